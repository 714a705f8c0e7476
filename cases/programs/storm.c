/* A storm of signals: storm ROUNDS. Realtime signals with values, sent to the process and to its threads, from threads and from
 * handlers inside handlers, while two timers fire all the time; each value must arrive exactly once, those of one kind from one
 * sender in the order in which they were sent, and nothing that is blocked. */
#define _GNU_SOURCE
#include "tell.h"
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>

/* FIRST to LAST are sent on by their handlers, each as the next kind; OWN goes to a thread of its own. */
#define FIRST (SIGRTMIN + 1)
#define LAST (SIGRTMIN + 4)
#define OWN (SIGRTMIN + 5)
#define ONCE 5

enum { THREADS = 3 };

static volatile long arrived[80], sums[80], ticks, ticked;
static pthread_t all[THREADS];
static pthread_barrier_t begun, sent, judged;
static __thread volatile long due, guarded;
static int rounds;

static void on_value(int sig, siginfo_t *info, void *context)
{
    (void)context;
    must(info->si_code == SI_QUEUE && info->si_pid == getpid(), "whose signal");
    /* Who waits for the last to arrive looks at the sum then. */
    __atomic_add_fetch(&sums[sig], info->si_value.sival_int, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&arrived[sig], 1, __ATOMIC_SEQ_CST);
    if (sig < LAST)
        must(!sigqueue(getpid(), sig + 1, info->si_value), "send it on");
}

static void on_own(int sig, siginfo_t *info, void *context)
{
    (void)context;
    must(info->si_value.sival_int == due, "the order");
    due++;
    __atomic_add_fetch(&arrived[sig], 1, __ATOMIC_SEQ_CST);
}

static void on_tick(int sig)
{
    must(!guarded, "a signal that is blocked");
    *(sig == SIGALRM ? &ticks : &ticked) += 1;
}

static void own(int sig, void (*handler)(int, siginfo_t *, void *), int flags)
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART | flags};
    must(!sigaction(sig, &action, NULL), "sigaction");
}

/* What only a thread without signals of timers may do. */
static void guard(void)
{
    sigset_t ticking, before;
    sigemptyset(&ticking);
    sigaddset(&ticking, SIGALRM);
    sigaddset(&ticking, SIGUSR1);
    for (int i = 0; i < 5; i++) {
        must(!pthread_sigmask(SIG_BLOCK, &ticking, &before), "block");
        guarded = 1;
        must(getppid() > 0, "getppid");
        guarded = 0;
        must(!pthread_sigmask(SIG_SETMASK, &before, NULL), "unblock");
    }
}

/* Waits for signals until `word` is what it must become. */
static void await(volatile long *word, long wanted)
{
    while (__atomic_load_n(word, __ATOMIC_SEQ_CST) < wanted)
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    must(*word == wanted, "more signals than were sent");
}

static void *blow(void *number)
{
    long own = (long)(uintptr_t)number;
    for (int round = 0; round < rounds; round++) {
        pthread_barrier_wait(&begun);
        for (int i = 0; i < ONCE; i++) {
            union sigval value = {.sival_int = round * 100 + own * 10 + i};
            must(!sigqueue(getpid(), FIRST, value), "sigqueue");
            value.sival_int = round * ONCE + i;
            guard();
            must(!pthread_sigqueue(all[(own + 1) % THREADS], OWN, value), "pthread_sigqueue");
        }
        pthread_barrier_wait(&sent);
        await(&due, (round + 1) * ONCE);
        pthread_barrier_wait(&judged);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    rounds = argc > 1 ? atoi(argv[1]) : 100;
    for (int sig = FIRST; sig <= LAST; sig++)
        own(sig, on_value, SA_NODEFER);
    own(OWN, on_own, 0);
    struct sigaction action = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
    must(!sigaction(SIGALRM, &action, NULL) && !sigaction(SIGUSR1, &action, NULL), "sigaction");
    struct itimerval often = {.it_value.tv_usec = 300, .it_interval.tv_usec = 300};
    must(!setitimer(ITIMER_REAL, &often, NULL), "setitimer");
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    struct itimerspec oftener = {.it_value.tv_nsec = 200000, .it_interval.tv_nsec = 200000};
    must(!timer_create(CLOCK_MONOTONIC, &event, &timer) && !timer_settime(timer, 0, &oftener, NULL), "a timer");
    must(!pthread_barrier_init(&begun, NULL, THREADS + 1) && !pthread_barrier_init(&sent, NULL, THREADS + 1) &&
         !pthread_barrier_init(&judged, NULL, THREADS + 1), "barriers");
    for (long i = 0; i < THREADS; i++)
        must(!pthread_create(&all[i], NULL, blow, (void *)i), "pthread_create");
    long sum = 0;
    for (int round = 0; round < rounds; round++) {
        long before = ticks, before_too = ticked;
        pthread_barrier_wait(&begun);
        pthread_barrier_wait(&sent);
        for (int own = 0; own < THREADS; own++)
            for (int i = 0; i < ONCE; i++)
                sum += round * 100 + own * 10 + i;
        for (int sig = FIRST; sig <= LAST; sig++) {
            await(&arrived[sig], (round + 1L) * THREADS * ONCE);
            must(sums[sig] == sum, "the values");
        }
        while (ticks == before || ticked == before_too)
            nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
        tell("%d %ld %ld\n", round, arrived[LAST], sum);
        pthread_barrier_wait(&judged);
        await(&arrived[OWN], (round + 1L) * THREADS * ONCE);
    }
    for (int i = 0; i < THREADS; i++)
        must(!pthread_join(all[i], NULL), "pthread_join");
    return 0;
}
