/* Timers of every kind at once: clocks ROUNDS. Descriptors of timers in an epoll, POSIX timers that make signals or threads, sleeps
 * until a time. What a timer told in all must be what the clock says it could: nothing early, nothing lost, nothing twice. */
#define _GNU_SOURCE
#include "tell.h"
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>

enum { KINDS = 8, SIGNALS = 4 };

static const long NS = 1000000000;
static long begun[KINDS], every[KINDS], told[KINDS];
static volatile long signalled[SIGNALS], threaded;

static long now(void)
{
    struct timespec time;
    must(!clock_gettime(CLOCK_MONOTONIC, &time), "clock_gettime");
    return time.tv_sec * NS + time.tv_nsec;
}

static struct timespec split(long ns)
{
    return (struct timespec){.tv_sec = ns / NS, .tv_nsec = ns % NS};
}

/* A read must tell of all that was due before it, and of nothing that was not due after it. */
static void read_timer(int fd, int kind)
{
    uint64_t times;
    long before = now();
    must(read(fd, &times, sizeof times) == sizeof times, "read a timer");
    long after = now();
    told[kind] += times;
    must(told[kind] >= (before - begun[kind]) / every[kind], "a timer lost some");
    must(told[kind] <= (after - begun[kind]) / every[kind], "a timer told too many");
}

static void on_signal(int sig, siginfo_t *info, void *context)
{
    (void)sig;
    (void)context;
    signalled[info->si_value.sival_int] += 1 + info->si_overrun;
}

static void on_thread(union sigval value)
{
    must(value.sival_int == 7, "the value");
    __atomic_add_fetch(&threaded, 1, __ATOMIC_SEQ_CST);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 100, queue = epoll_create1(EPOLL_CLOEXEC), fds[KINDS];
    must(queue >= 0, "epoll_create1");
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
    must(!sigaction(SIGRTMIN + 1, &action, NULL), "sigaction");
    for (int kind = 0; kind < KINDS; kind++) {
        every[kind] = 700000 + kind * 310000;
        must((fds[kind] = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC)) >= 0, "timerfd_create");
        begun[kind] = now() + 1000000;
        struct itimerspec time = {split(every[kind]), split(begun[kind] + every[kind])};
        must(!timerfd_settime(fds[kind], TFD_TIMER_ABSTIME, &time, NULL), "timerfd_settime");
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = kind};
        must(!epoll_ctl(queue, EPOLL_CTL_ADD, fds[kind], &event), "epoll_ctl");
    }
    timer_t timers[SIGNALS], thread_timer;
    long since[SIGNALS];
    for (int i = 0; i < SIGNALS; i++) {
        struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 1, .sigev_value.sival_int = i};
        struct itimerspec time = {split(900000 + i * 100000), split(900000 + i * 100000)};
        since[i] = now();
        must(!timer_create(CLOCK_MONOTONIC, &event, &timers[i]) && !timer_settime(timers[i], 0, &time, NULL), "a timer");
    }
    struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = on_thread, .sigev_value.sival_int = 7};
    must(!timer_create(CLOCK_MONOTONIC, &event, &thread_timer), "a timer with a thread");
    for (int round = 0; round < rounds; round++) {
        long before = threaded, wake = now() + 400000;
        struct itimerspec once = {.it_value.tv_nsec = 500000};
        must(!timer_settime(thread_timer, 0, &once, NULL), "timer_settime");
        struct timespec until = split(wake);
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
            ;
        must(now() >= wake, "a sleep that ended early");
        for (int taken = 0; taken < KINDS;) {
            struct epoll_event events[KINDS];
            int n = epoll_wait(queue, events, KINDS, -1);
            must(n > 0 || errno == EINTR, "epoll_wait");
            for (int i = 0; i < n; i++, taken++)
                read_timer(fds[events[i].data.u32], events[i].data.u32);
        }
        while (threaded == before)
            nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
        must(threaded == before + 1, "one thread");
        for (int i = 0; i < SIGNALS; i++)
            must(signalled[i] <= (now() - since[i]) / (900000 + i * 100000), "a signal told too many");
        tell("round %d\n", round);
    }
    return 0;
}
