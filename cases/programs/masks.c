/* Calls that bring a mask of their own for as long as they wait: sigsuspend, ppoll, pselect, epoll_pwait. Every signal that
 * the mask lets through is taken before the call returns, each handler under that mask; one that it blocks does not end it.
 * masks ROUNDS */
#define _GNU_SOURCE
#include "tell.h"
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/time.h>
#include <time.h>

enum { KINDS = 4, CALLS = 5 };
static int kinds[KINDS];
static const char *const names[CALLS] = {"sigsuspend", "ppoll", "pselect", "epoll_pwait", "epoll_pwait2"};

static char taken[256];
static volatile long ticks;

static const char *mask_now(void)
{
    static char text[KINDS + 1];
    sigset_t set;
    sigprocmask(SIG_BLOCK, NULL, &set);
    for (int i = 0; i < KINDS; i++)
        text[i] = sigismember(&set, kinds[i]) ? 'a' + i : '-';
    return text;
}

static void handler(int signal, siginfo_t *info, void *context)
{
    const ucontext_t *from = context;
    int kind = 0, returns_to = 0;
    while (kinds[kind] != signal)
        kind++;
    for (int i = 0; i < KINDS; i++)
        returns_to |= sigismember(&from->uc_sigmask, kinds[i]) << i;
    size_t len = strlen(taken);
    snprintf(taken + len, sizeof taken - len, " %c%d(%s,%x)", 'a' + kind, info->si_value.sival_int, mask_now(), returns_to);
}

static void tick(int signal)
{
    (void)signal;
    ticks++;
}

static int waits(int call, int epoll, const sigset_t *mask, long nanoseconds)
{
    struct timespec time = {0, nanoseconds};
    struct epoll_event event;
    switch (call) {
    case 0: return sigsuspend(mask);
    case 1: return ppoll(NULL, 0, &time, mask);
    case 2: return pselect(0, NULL, NULL, NULL, &time, mask);
    case 3: return epoll_pwait(epoll, &event, 1, nanoseconds / 1000000, mask);
    default: return epoll_pwait2(epoll, &event, 1, &time, mask);
    }
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 20, epoll = epoll_create1(EPOLL_CLOEXEC), me = getpid();
    uint64_t random = 4711;
    sigset_t all, none, ticking;
    kinds[0] = SIGUSR1, kinds[1] = SIGTERM, kinds[2] = SIGRTMIN + 1, kinds[3] = SIGRTMIN + 5;
    sigemptyset(&all), sigemptyset(&none), sigemptyset(&ticking);
    for (int i = 0; i < KINDS; i++)
        sigaddset(&all, kinds[i]);
    sigaddset(&ticking, SIGALRM);
    signal(SIGALRM, tick);
    sigprocmask(SIG_SETMASK, &all, NULL);
    for (int round = 0; round < rounds; round++) {
        for (int call = 0; call < CALLS; call++) {
            int how = next(&random), sent = next(&random) % 15 + 1, left = 0;
            sigset_t mask = none;
            for (int i = 0; i < KINDS; i++) {
                struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
                sigemptyset(&action.sa_mask);
                if (how >> i & 1)
                    action.sa_flags |= SA_RESTART;
                if (how >> (4 + i) & 1)
                    sigaddset(&action.sa_mask, kinds[(i + 1) % KINDS]);
                must(!sigaction(kinds[i], &action, NULL), "sigaction");
                /* One stays blocked now and then. */
                if (how >> 8 & 1 && i == (how >> 9) % KINDS && sent & ~(1 << i))
                    sigaddset(&mask, kinds[i]), left = 1 << i;
            }
            for (int i = 0; i < KINDS; i++)
                for (int n = 0; n < 2 && sent >> i & 1; n++)
                    must(!sigqueue(me, kinds[i], (union sigval){.sival_int = n}), "sigqueue");
            tell("%d %s: %x sent, %x kept back\n", round, names[call], sent, left);
            int r = waits(call, epoll, &mask, 5000000), error = errno;
            tell("%d %s: %d %s:%s, then %s\n", round, names[call], r, strerror(error), taken, mask_now());
            taken[0] = 0;
            must(!sigprocmask(SIG_SETMASK, &none, NULL) && !sigprocmask(SIG_SETMASK, &all, NULL), "sigprocmask");
            tell("%d %s left:%s\n", round, names[call], taken);
            taken[0] = 0;
        }
        /* The timer's signals are let through everywhere but in these calls, which time out. */
        struct itimerval often = {{0, 70}, {0, 70}}, never = {{0, 0}, {0, 0}};
        must(!setitimer(ITIMER_REAL, &often, NULL), "setitimer");
        for (int i = 0; i < 40; i++)
            for (int call = 1; call < CALLS; call++)
                must(!waits(call, epoll, &ticking, call == 3 ? 1000000 : 40000), "a blocked signal ended a wait");
        must(!setitimer(ITIMER_REAL, &never, NULL), "setitimer");
        must(ticks > 0, "no tick came");
        tell("%d: not ended by a signal that is blocked\n", round);
    }
    return 0;
}
