/* Passes standard input on, and waits for it by nothing but signals (O_ASYNC): async_input [KIND]. One that is lost is a hang.
 *
 * KIND: realtime: another signal; ioctl: all is asked for by ioctl; group: and for the group, of which the program is the leader. */
#define _GNU_SOURCE
#include "tell.h"
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

static volatile sig_atomic_t ready;

static void on_signal(int sig, siginfo_t *info, void *context)
{
    (void)context;
    if (sig == SIGIO || info->si_fd == 0)
        ready = 1;
}

/* What a socket has for input and output does not wait for either. */
static void put_patiently(const char *bytes, size_t len)
{
    while (len) {
        ssize_t n = write(1, bytes, len);
        struct pollfd room = {.fd = 1, .events = POLLOUT};
        must(n > 0 || errno == EAGAIN, "write");
        if (n > 0)
            bytes += n, len -= n;
        else
            must(poll(&room, 1, -1) == 1 || errno == EINTR, "poll");
    }
}

static void ask_by_ioctl(int owner)
{
    int on = 1, now = 0;
    must(!ioctl(0, owner < 0 ? SIOCSPGRP : FIOSETOWN, &owner), "FIOSETOWN");
    must(!ioctl(0, FIOGETOWN, &now) && now == owner, "FIOGETOWN");
    must(!ioctl(0, FIOASYNC, &on) && !ioctl(0, FIONBIO, &on), "FIOASYNC, FIONBIO");
}

int main(int argc, char **argv)
{
    static char bytes[512];
    const char *kind = argc > 1 ? argv[1] : "";
    int is_group = !strcmp(kind, "group"), sig = !strcmp(kind, "realtime") ? SIGRTMIN + 2 : SIGIO;
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigset_t blocked, before;
    sigemptyset(&blocked);
    sigaddset(&blocked, sig);
    sigaddset(&blocked, SIGIO);
    must(!sigprocmask(SIG_BLOCK, &blocked, &before), "sigprocmask");
    must(!sigaction(sig, &action, NULL) && !sigaction(SIGIO, &action, NULL), "sigaction");
    must(!is_group || !setpgid(0, 0), "setpgid");
    int owner = is_group ? -getpgrp() : getpid();
    if (is_group || !strcmp(kind, "ioctl"))
        ask_by_ioctl(owner);
    else {
        must(!fcntl(0, F_SETOWN, owner), "F_SETOWN");
        must(sig == SIGIO || !fcntl(0, F_SETSIG, sig), "F_SETSIG");
        must(!fcntl(0, F_SETFL, fcntl(0, F_GETFL) | O_ASYNC | O_NONBLOCK), "F_SETFL");
    }
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
            put_patiently(bytes, n);
            total += n;
        }
        must(fcntl(0, F_GETOWN) == owner, "F_GETOWN");
    }
    dprintf(2, "%lu bytes\n", total);
    return 0;
}
