/* Masks over executes: masked_execs COUNT. Each image shows which signals are blocked, has a timer send it a signal again and again that it
 * handles, and becomes the next: a signal that is pending as it does so must not leave the next one with more blocked than it had. */
#define _GNU_SOURCE
#include "tell.h"
#include <signal.h>
#include <time.h>

static void on_signal(int sig)
{
    (void)sig;
}

static void tell_blocked(int left)
{
    sigset_t set;
    must(!sigprocmask(SIG_BLOCK, 0, &set), "sigprocmask");
    char blocked[300] = "";
    for (int sig = 1; sig < 65; sig++)
        if (sigismember(&set, sig) == 1)
            snprintf(blocked + strlen(blocked), 6, " %d", sig);
    tell("%d more, blocked:%s\n", left, blocked);
}

int main(int argc, char **argv)
{
    int left = argc > 1 ? atoi(argv[1]) : 30;
    tell_blocked(left);
    if (left == 0)
        return 0;
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, SIGUSR2);
    must(!sigprocmask(SIG_BLOCK, &one, 0), "block");
    /* What is pending at the execute is ignored by the next image. */
    struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
    must(!sigaction(SIGURG, &action, 0), "sigaction");
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGURG };
    struct itimerspec often = { { 0, 50000 }, { 0, 50000 } };
    timer_t timer;
    must(!timer_create(CLOCK_MONOTONIC, &event, &timer) && !timer_settime(timer, 0, &often, 0), "timer");
    char next[12];
    snprintf(next, sizeof next, "%d", left - 1);
    execl("/proc/self/exe", argv[0], next, (char *)0);
    must(0, "execl");
}
