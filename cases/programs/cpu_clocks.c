/* Clocks and timers of processor time, by the ids that hold the numbers of the process and of its threads: cpu_clocks ROUNDS. Each
 * must be found, and fire, right after a death. */
#define _GNU_SOURCE
#include "tell.h"
#include <pthread.h>
#include <signal.h>
#include <time.h>

enum { CLOCKS = 3 };

static volatile int fired[CLOCKS];
static volatile long count;

static void on_signal(int sig, siginfo_t *info, void *context)
{
    (void)sig;
    (void)context;
    fired[info->si_value.sival_int]++;
}

static void *compute(void *end)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN);
    must(!pthread_sigmask(SIG_BLOCK, &set, NULL), "pthread_sigmask");
    while (!*(volatile int *)end)
        count++;
    return NULL;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 60;
    static volatile int end;
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
    pthread_t thread;
    clockid_t clocks[CLOCKS];
    timer_t timers[CLOCKS];
    must(!sigaction(SIGRTMIN, &action, NULL), "sigaction");
    must(!pthread_create(&thread, NULL, compute, (void *)&end), "pthread_create");
    must(!clock_getcpuclockid(getpid(), &clocks[0]), "clock_getcpuclockid");
    must(!(errno = pthread_getcpuclockid(pthread_self(), &clocks[1])), "pthread_getcpuclockid");
    must(!(errno = pthread_getcpuclockid(thread, &clocks[2])), "pthread_getcpuclockid");
    for (int i = 0; i < CLOCKS; i++) {
        struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN, .sigev_value.sival_int = i};
        must(!timer_create(clocks[i], &event, &timers[i]), "timer_create");
    }
    for (int round = 0; round < rounds; round++) {
        struct timespec time;
        struct itimerspec set = {.it_value.tv_nsec = 2000000}, left;
        for (int i = 0; i < CLOCKS; i++) {
            must(!clock_getres(clocks[i], &time), "clock_getres");
            must(!clock_gettime(clocks[i], &time), "clock_gettime");
            fired[i] = 0;
            must(!timer_settime(timers[i], 0, &set, NULL), "timer_settime");
            must(!timer_gettime(timers[i], &left), "timer_gettime");
        }
        /* The other thread computes meanwhile, so that its time passes. */
        must(!(errno = clock_nanosleep(clocks[2], 0, &(struct timespec){.tv_nsec = 500000}, NULL)) || errno == EINTR, "clock_nanosleep");
        for (int i = 0; i < CLOCKS; i++)
            while (!fired[i])
                ;
        tell("round %d: all fired\n", round);
    }
    end = 1;
    must(!pthread_join(thread, NULL), "pthread_join");
    return 0;
}
