/* Threads and signals: thread_signals ROUNDS. Signals for one thread and for whichever has them unblocked, handlers on
 * stacks of their own, a thread that waits for signals, masks of each thread, names, and an exec at the end by a thread
 * that is not the first. Every line is printed by one thread after the others did their part. */
#define _GNU_SOURCE
#include "tell.h"
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

enum { THREADS = 4 };

static pthread_t all[THREADS], waiter;
static sem_t taken, spoken, begun;
static volatile int counts[THREADS];
static __thread int own = -1;
static int rounds;

static void on_signal(int sig, siginfo_t *info, void *context)
{
    (void)context;
    must(sig == SIGUSR1 && own >= 0 && info->si_pid == getpid(), "whose signal");
    stack_t now;
    must(!sigaltstack(0, &now) && now.ss_flags == SS_ONSTACK, "the stack of a handler");
    counts[own]++;
    must(!sem_post(&taken), "post");
}

static void *take(void *arg)
{
    own = (int)(uintptr_t)arg;
    char name[16], found[16] = "";
    snprintf(name, sizeof name, "taker-%d", own);
    must(!pthread_setname_np(pthread_self(), name), "set a name");
    stack_t stack = { .ss_sp = malloc(65536), .ss_size = 65536 };
    must(!sigaltstack(&stack, 0), "sigaltstack");
    sigset_t mask, now;
    sigfillset(&mask);
    sigdelset(&mask, SIGUSR1);
    must(!pthread_sigmask(SIG_SETMASK, &mask, 0), "mask");
    must(!sem_post(&begun), "post");
    for (int round = 0; round < rounds; round++) {
        while (counts[own] <= round)
            usleep(50);
        must(!pthread_sigmask(SIG_SETMASK, 0, &now) && sigismember(&now, SIGUSR2) && !sigismember(&now, SIGUSR1), "mask");
        must(!prctl(PR_GET_NAME, found) && !strcmp(name, found), "name");
    }
    return 0;
}

static void *await(void *arg)
{
    (void)arg;
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR2);
    must(!sem_post(&begun), "post");
    for (int round = 0; round < rounds; round++) {
        int sig = 0;
        must(!sigwait(&mask, &sig) && sig == SIGUSR2, "sigwait");
        must(!sem_post(&spoken), "post");
    }
    return 0;
}

static void down(sem_t *semaphore)
{
    while (sem_wait(semaphore))
        must(errno == EINTR, "sem_wait");
}

static void *last(void *arg)
{
    execl("/bin/echo", "echo", "the end", (char *)0);
    must(0, "exec");
    return arg;
}

int main(int argc, char **argv)
{
    rounds = argc > 1 ? atoi(argv[1]) : 20;
    must(!sem_init(&taken, 0, 0) && !sem_init(&spoken, 0, 0) && !sem_init(&begun, 0, 0), "semaphores");
    struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART };
    must(!sigaction(SIGUSR1, &action, 0), "sigaction");
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR1);
    sigaddset(&mask, SIGUSR2);
    must(!pthread_sigmask(SIG_BLOCK, &mask, 0), "mask");
    for (int i = 0; i < THREADS; i++)
        must(!pthread_create(&all[i], 0, take, (void *)(uintptr_t)i), "create");
    must(!pthread_create(&waiter, 0, await, 0), "create");
    for (int i = 0; i <= THREADS; i++)
        down(&begun);
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < THREADS; i++)
            must(!pthread_kill(all[i], SIGUSR1), "pthread_kill");
        /* They may be on their way when this is committed. */
        tell("sent %d\n", round);
        for (int i = 0; i < THREADS; i++)
            down(&taken);
        for (int i = 0; i < THREADS; i++)
            must(counts[i] == round + 1, "how often");
        must(!kill(getpid(), SIGUSR2), "kill");
        down(&spoken);
        tell("round %d\n", round);
    }
    for (int i = 0; i < THREADS; i++)
        must(!pthread_join(all[i], 0), "join");
    must(!pthread_join(waiter, 0), "join");
    pthread_t end;
    must(!pthread_create(&end, 0, last, 0), "create");
    pause();
    return 0;
}
