/* Signals that must be taken exactly once: raised by itself, from an interval timer, on an alternate stack, while blocked.
 * signals ROUNDS */
#define _GNU_SOURCE
#include "tell.h"
#include <signal.h>
#include <sys/time.h>

static volatile long taken[65], on_alternate;
static char stack[65536];

static void handler(int signal, siginfo_t *info, void *context)
{
    char here;
    (void)info;
    (void)context;
    taken[signal]++;
    on_alternate += &here >= stack && &here < stack + sizeof stack;
}

static void own(int signal, int flags)
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags};
    must(!sigaction(signal, &action, NULL), "sigaction");
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 100;
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    sigset_t blocked, none, old;
    must(!sigaltstack(&alternate, NULL), "sigaltstack");
    own(SIGUSR1, 0);
    own(SIGUSR2, SA_ONSTACK);
    own(SIGALRM, SA_RESTART);
    own(SIGRTMIN + 3, 0);
    sigemptyset(&none);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGALRM);
    sigaddset(&blocked, SIGUSR1);
    sigaddset(&blocked, SIGRTMIN + 3);
    for (int i = 0; i < rounds; i++) {
        raise(SIGUSR2);
        must(!sigprocmask(SIG_BLOCK, &blocked, &old), "sigprocmask");
        /* Blocked: two of the same kind become one, real-time ones queue. */
        kill(getpid(), SIGUSR1);
        kill(getpid(), SIGUSR1);
        for (int j = 0; j < 3; j++)
            must(!sigqueue(getpid(), SIGRTMIN + 3, (union sigval){.sival_int = j}), "sigqueue");
        long before = taken[SIGUSR1];
        tell("%d blocked\n", i);
        must(taken[SIGUSR1] == before, "a blocked signal was taken");
        must(!sigprocmask(SIG_SETMASK, &old, NULL), "sigprocmask");
        must(!sigprocmask(SIG_BLOCK, &blocked, &old), "sigprocmask");
        /* One tick of a timer, awaited without a race. */
        struct itimerval once = {.it_value = {.tv_usec = 300}};
        long ticks = taken[SIGALRM];
        must(!setitimer(ITIMER_REAL, &once, NULL), "setitimer");
        tell("%d timed\n", i);
        while (taken[SIGALRM] == ticks)
            sigsuspend(&none);
        must(!sigprocmask(SIG_SETMASK, &old, NULL), "sigprocmask");
        tell("%d usr1 %ld usr2 %ld alarm %ld queued %ld alternate %ld\n", i, taken[SIGUSR1], taken[SIGUSR2],
             taken[SIGALRM], taken[SIGRTMIN + 3], on_alternate);
    }
    return 0;
}
