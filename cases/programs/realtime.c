/* Realtime signals: values in order, taken by handler, sigwaitinfo, signalfd; sigsuspend, ppoll with masks, longjmp out of handlers.
 * realtime ROUNDS */
#define _GNU_SOURCE
#include "tell.h"
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <time.h>

static volatile int order[64], count;
static sigjmp_buf out;

static void handler(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)context;
    if (count < 64)
        order[count++] = info->si_value.sival_int;
}

static void jumper(int signal) { siglongjmp(out, signal); }

static void show(int round, const char *how)
{
    char line[256];
    int n = snprintf(line, sizeof line, "%d %s:", round, how);
    for (int i = 0; i < count; i++)
        n += snprintf(line + n, sizeof line - n, " %d", order[i]);
    tell("%s\n", line);
    count = 0;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 100, me = getpid();
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    sigset_t set, old, none;
    sigemptyset(&set), sigemptyset(&none);
    for (int i = 1; i < 4; i++) {
        sigaddset(&set, SIGRTMIN + i);
        sigaction(SIGRTMIN + i, &action, NULL);
    }
    signal(SIGUSR1, jumper);
    sigprocmask(SIG_BLOCK, &set, &old);
    int fd = signalfd(-1, &set, SFD_CLOEXEC);
    for (volatile int round = 0; round < rounds; round++) {
        for (int i = 0; i < 6; i++)
            must(!sigqueue(me, SIGRTMIN + 1 + i % 3, (union sigval){.sival_int = round * 10 + i}), "sigqueue");
        tell("%d queued\n", round);
        siginfo_t info;
        must(sigwaitinfo(&set, &info) > 0, "sigwaitinfo");
        tell("%d waited for %d %d\n", round, info.si_signo - SIGRTMIN, info.si_value.sival_int);
        struct signalfd_siginfo record;
        must(read(fd, &record, sizeof record) == sizeof record, "signalfd");
        tell("%d read %d %d\n", round, record.ssi_signo - SIGRTMIN, record.ssi_int);
        sigsuspend(&none);
        show(round, "suspend");
        for (int i = 0; i < 3; i++)
            sigqueue(me, SIGRTMIN + 3 - i, (union sigval){.sival_int = i});
        tell("%d again\n", round);
        struct timespec soon = {0, 1000000};
        int r = ppoll(NULL, 0, &soon, &none);
        tell("%d ppoll %d %s\n", round, r, r < 0 ? strerror(errno) : "");
        show(round, "ppoll");
        struct timespec zero = {0, 0};
        r = sigtimedwait(&set, &info, &zero);
        tell("%d nothing left: %d %s\n", round, r, strerror(errno));
        int sig = sigsetjmp(out, 1);
        if (!sig)
            raise(SIGUSR1);
        tell("%d jumped with %d\n", round, sig);
    }
    return 0;
}
