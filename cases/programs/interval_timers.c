/* Interval timers of processor time: interval_timers ROUNDS. Both tick, first for 40 ms without an output, then beside outputs; one
 * that fires once while its signal is blocked is taken once; one that is set for later is still to come at the end. Then the same of
 * timers that were set before an execve. */
#define _GNU_SOURCE
#include "tell.h"
#include <signal.h>
#include <sys/time.h>
#include <time.h>

static volatile long virtual_ticks, both_ticks;

static void on_tick(int sig)
{
    if (sig == SIGVTALRM)
        virtual_ticks++;
    else
        both_ticks++;
}

/* Processor time of this process, milliseconds. Whoever goes on in a dead one's place has used less. */
static long spent(void)
{
    struct timespec t;
    must(!clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t), "clock_gettime");
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void set(int which, long first_us, long then_us)
{
    struct itimerval t = { { 0, then_us }, { first_us / 1000000, first_us % 1000000 } };
    must(!setitimer(which, &t, 0), "setitimer");
}

static struct itimerval get(int which)
{
    struct itimerval t;
    must(!getitimer(which, &t), "getitimer");
    return t;
}

static int is_pending(int sig)
{
    sigset_t set;
    must(!sigpending(&set), "sigpending");
    return sigismember(&set, sig);
}

/* The timer has been set to fire once, and its signal is blocked. */
static void take_one(int round)
{
    sigset_t one;
    siginfo_t info;
    sigemptyset(&one);
    sigaddset(&one, SIGVTALRM);
    while (!is_pending(SIGVTALRM))
        must(spent() < 30000, "it does not fire");
    tell("%d is pending\n", round);
    must(sigwaitinfo(&one, &info) == SIGVTALRM && info.si_code == SI_KERNEL, "sigwaitinfo");
    must(!is_pending(SIGVTALRM), "it is pending twice");
    struct itimerval left = get(ITIMER_VIRTUAL);
    must(!left.it_value.tv_sec && !left.it_value.tv_usec, "it is over");
    tell("%d was taken\n", round);
}

static int after(void)
{
    for (int i = 0; i < 10; i++)
        tell("after %d\n", i);
    take_one(100);
    must(get(ITIMER_PROF).it_value.tv_sec > 3000, "the one for later, after the execve");
    must(get(ITIMER_REAL).it_value.tv_sec > 3000, "the other one for later, after the execve");
    tell("all fired\n");
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 2)
        return after();
    int rounds = argc > 1 ? atoi(argv[1]) : 40;
    struct sigaction action = { .sa_handler = on_tick, .sa_flags = SA_RESTART };
    must(!sigaction(SIGVTALRM, &action, 0) && !sigaction(SIGPROF, &action, 0), "sigaction");
    set(ITIMER_VIRTUAL, 1000, 1000);
    set(ITIMER_PROF, 1000, 1000);
    for (long began = spent(); spent() < began + 40 || !virtual_ticks || !both_ticks;)
        must(spent() < 30000, "no tick at the beginning");
    for (int round = 0; round < rounds; round++) {
        tell("round %d\n", round);
        for (long a = virtual_ticks, b = both_ticks; virtual_ticks == a || both_ticks == b;)
            must(spent() < 30000, "no tick");
        must(get(ITIMER_VIRTUAL).it_interval.tv_usec == 1000 && get(ITIMER_PROF).it_interval.tv_usec == 1000, "the interval");
    }
    set(ITIMER_PROF, 3600000000, 0);
    set(ITIMER_VIRTUAL, 0, 0);
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, SIGVTALRM);
    must(!sigprocmask(SIG_BLOCK, &one, 0), "mask");
    /* What had come before that. */
    while (is_pending(SIGVTALRM))
        sigwaitinfo(&one, 0);
    for (int round = 0; round < rounds / 2; round++) {
        set(ITIMER_VIRTUAL, 1000, 0);
        take_one(round);
    }
    must(get(ITIMER_PROF).it_value.tv_sec > 3000, "the one for later");
    set(ITIMER_REAL, 3600000000, 0);
    set(ITIMER_VIRTUAL, 1000, 0);
    execl("/proc/self/exe", argv[0], "0", "after", (char *)0);
    must(0, "execl");
}
