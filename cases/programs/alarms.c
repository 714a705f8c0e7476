/* POSIX timers: alarms ROUNDS. One that fires once by a signal with a value, one that repeats, one that a thread's function
 * serves, one of processor time, and one that waits; a line is printed when each has fired as often as it must. */
#define _GNU_SOURCE
#include "tell.h"
#include <signal.h>
#include <time.h>

static volatile long once, often, number, worked;
static timer_t one, many, slow, work;

static void on_signal(int sig, siginfo_t *info, void *context)
{
    (void)context;
    must(info->si_code == SI_TIMER, "si_code");
    if (sig == SIGRTMIN + 1) {
        must(info->si_value.sival_int == (int)number, "the value");
        once++;
    } else if (sig == SIGUSR1) {
        often += 1 + timer_getoverrun(many);
    } else {
        must(sig == SIGUSR2, "which signal");
        worked++;
    }
}

static timer_t make(clockid_t clock, int sig, int value)
{
    timer_t timer;
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = sig, .sigev_value.sival_int = value };
    must(!timer_create(clock, &event, &timer), "timer_create");
    return timer;
}

static void set(timer_t timer, long first_us, long then_us)
{
    struct itimerspec time = { .it_value.tv_nsec = first_us * 1000, .it_interval.tv_nsec = then_us * 1000 };
    must(!timer_settime(timer, 0, &time, 0), "timer_settime");
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 50;
    struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART };
    sigset_t all, none;
    sigemptyset(&none);
    sigfillset(&all);
    must(!sigaction(SIGRTMIN + 1, &action, 0) && !sigaction(SIGUSR1, &action, 0) && !sigaction(SIGUSR2, &action, 0), "sigaction");
    must(!sigprocmask(SIG_SETMASK, &all, 0), "mask");
    many = make(CLOCK_MONOTONIC, SIGUSR1, 0);
    work = make(CLOCK_PROCESS_CPUTIME_ID, SIGUSR2, 0);
    slow = make(CLOCK_REALTIME, SIGTERM, 0);
    struct itimerspec later = { .it_value.tv_sec = 3600 }, left;
    must(!timer_settime(slow, 0, &later, 0), "a timer for later");
    set(many, 500, 500);
    for (int round = 0; round < rounds; round++) {
        number = round;
        one = make(CLOCK_MONOTONIC, SIGRTMIN + 1, round);
        set(one, 300, 0);
        tell("round %d\n", round);
        long seen = often, before = once;
        while (once == before || often == seen)
            sigsuspend(&none);
        must(once == before + 1, "once");
        must(!timer_gettime(one, &left) && !left.it_value.tv_sec && !left.it_value.tv_nsec, "it is over");
        must(!timer_delete(one), "timer_delete");
        must(!timer_gettime(slow, &left) && left.it_value.tv_sec > 3000, "it is to come");
    }
    set(work, 1000, 1000);
    must(!sigprocmask(SIG_SETMASK, &none, 0), "mask");
    for (long turns = 0; !worked; turns++)
        must(turns < 20000000000, "work");
    must(timer_delete((timer_t)99) == -1 && errno == EINVAL, "a timer that is not there");
    tell("all fired\n");
    return 0;
}
