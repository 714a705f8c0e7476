/* Calls that wait until a timer's signal ends them: EINTR, what they had done by then, or, with SA_RESTART, the call goes on
 * and is done when the handler has made room or given it what it waits for. blocked ROUNDS */
#define _GNU_SOURCE
#include "tell.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>

static volatile int taken, wants;
static char bytes[1 << 20];

/* Gives the call that it interrupts what it waits for, once: room to write, or something to read. */
static void tick(int signal)
{
    (void)signal;
    if (taken++)
        return;
    if (wants < 0)
        (void)!write(-wants, "x", 1);
    else if (wants > 0)
        (void)!read(wants, bytes + sizeof bytes / 2, sizeof bytes / 2);
}

static void own(int flags, int wanted)
{
    struct sigaction action = {.sa_handler = tick, .sa_flags = flags};
    must(!sigaction(SIGALRM, &action, NULL), "sigaction");
    taken = 0;
    wants = wanted;
    struct itimerval often = {{0, 4000}, {0, 4000}};
    must(!setitimer(ITIMER_REAL, &often, NULL), "setitimer");
}

static void show(int round, const char *what, long r)
{
    int error = errno;
    struct itimerval never = {{0, 0}, {0, 0}};
    must(!setitimer(ITIMER_REAL, &never, NULL), "setitimer");
    tell("%d %s: %ld %s, %s\n", round, what, r, r < 0 ? strerror(error) : "", taken ? "taken" : "nothing taken");
}

static void fill(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    must(!fcntl(fd, F_SETFL, flags | O_NONBLOCK), "F_SETFL");
    while (write(fd, bytes, 4096) > 0)
        ;
    must(errno == EAGAIN && !fcntl(fd, F_SETFL, flags), "fill");
}

static void drain(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    must(!fcntl(fd, F_SETFL, flags | O_NONBLOCK), "F_SETFL");
    while (read(fd, bytes, sizeof bytes) > 0)
        ;
    must(errno == EAGAIN && !fcntl(fd, F_SETFL, flags), "drain");
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 10, tube[2], pair[2], empty[2];
    must(!pipe2(tube, O_CLOEXEC) && !pipe2(empty, O_CLOEXEC), "pipe2");
    must(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), "socketpair");
    fill(tube[1]);
    fill(pair[1]);
    struct iovec two[2] = {{bytes, 10}, {bytes + 10, 20}};
    for (int i = 0; i < rounds; i++) {
        own(0, 0);
        show(i, "write to a full pipe", write(tube[1], bytes, 100));
        own(0, 0);
        show(i, "writev to a full pipe", writev(tube[1], two, 2));
        must(read(tube[0], bytes, 8192) == 8192, "read");
        own(0, 0);
        show(i, "write of more than fits", write(tube[1], bytes, 100000));
        own(SA_RESTART, tube[0]);
        show(i, "write that goes on", write(tube[1], bytes, 100));
        drain(tube[0]);
        fill(tube[1]);
        own(0, 0);
        show(i, "send to a full socket", send(pair[1], bytes, 100, 0));
        own(0, 0);
        show(i, "read from an empty pipe", read(empty[0], bytes, 10));
        own(SA_RESTART, -empty[1]);
        show(i, "read that goes on", read(empty[0], bytes, 1));
        drain(empty[0]);
        own(0, 0);
        show(i, "recv from an empty socket", recv(pair[1], bytes, 10, 0));
    }
    return 0;
}
