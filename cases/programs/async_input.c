/* Passes standard input on, and waits for it by nothing but signals (O_ASYNC): async_input [realtime]. One that is lost is a hang. */
#define _GNU_SOURCE
#include "tell.h"
#include <fcntl.h>
#include <signal.h>

static volatile sig_atomic_t ready;

static void on_signal(int sig, siginfo_t *info, void *context)
{
    (void)context;
    if (sig == SIGIO || info->si_fd == 0)
        ready = 1;
}

int main(int argc, char **argv)
{
    static char bytes[512];
    int sig = argc > 1 && !strcmp(argv[1], "realtime") ? SIGRTMIN + 2 : SIGIO;
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigset_t blocked, before;
    sigemptyset(&blocked);
    sigaddset(&blocked, sig);
    sigaddset(&blocked, SIGIO);
    must(!sigprocmask(SIG_BLOCK, &blocked, &before), "sigprocmask");
    must(!sigaction(sig, &action, NULL) && !sigaction(SIGIO, &action, NULL), "sigaction");
    must(!fcntl(0, F_SETOWN, getpid()), "F_SETOWN");
    must(sig == SIGIO || !fcntl(0, F_SETSIG, sig), "F_SETSIG");
    must(!fcntl(0, F_SETFL, fcntl(0, F_GETFL) | O_ASYNC | O_NONBLOCK), "F_SETFL");
    uint64_t total = 0;
    int ended = 0;
    /* What came before anybody was told. */
    ready = 1;
    while (!ended) {
        while (!ready)
            sigsuspend(&before);
        ready = 0;
        for (ssize_t n; (n = read(0, bytes, sizeof bytes)) >= 0 || errno != EAGAIN;) {
            must(n >= 0, "read");
            if ((ended = n == 0))
                break;
            put_all(1, bytes, n);
            total += n;
        }
        must(fcntl(0, F_GETOWN) == getpid(), "F_GETOWN");
    }
    dprintf(2, "%lu bytes\n", total);
    return 0;
}
