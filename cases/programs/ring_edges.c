/* What is easily got wrong about rings: waits that a signal or a time ends, a file that is closed while a request waits for it, more
 * completions than there is room for, the ring's descriptor in poll, two rings of one thread, an eventfd that is closed. ring_edges ROUNDS */
#define _GNU_SOURCE
#include "ring.h"
#include <linux/time_types.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/time.h>

static struct ring ring, other;
static volatile sig_atomic_t came;

static void handle(int signal)
{
    came = signal;
}

static struct io_uring_sqe nop(int number)
{
    return (struct io_uring_sqe){.opcode = IORING_OP_NOP, .user_data = number};
}

static struct io_uring_sqe reading(int fd, void *to, unsigned len, int number)
{
    return (struct io_uring_sqe){.opcode = IORING_OP_READ, .fd = fd, .addr = (uintptr_t)to, .len = len, .off = -1, .user_data = number};
}

/* Waits for a completion that does not come, with a mask or a time. */
static void wait_in_vain(const sigset_t *mask, struct __kernel_timespec *time, const char *what)
{
    struct io_uring_getevents_arg more = {.sigmask = (uintptr_t)mask, .sigmask_sz = 8, .ts = (uintptr_t)time};
    long n;
    /* A signal that came before the wait is no reason to end it. */
    do
        n = syscall(SYS_io_uring_enter, ring.fd, 0, 1, IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG, &more, sizeof more);
    while (!time && n < 0 && errno == EINTR && !came);
    tell("%s: %s, signal %d\n", what, n < 0 ? strerror(errno) : "done", (int)came);
    came = 0;
}

static void interruptions(void)
{
    sigset_t blocked, before;
    struct __kernel_timespec time = {.tv_nsec = 300000};
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGALRM);
    must(!sigprocmask(SIG_BLOCK, &blocked, &before), "sigprocmask");
    must(!raise(SIGALRM), "raise");
    wait_in_vain(&before, NULL, "mask");
    must(!sigprocmask(SIG_SETMASK, &before, NULL), "sigprocmask");
    wait_in_vain(NULL, &time, "time");
}

static void closed_files(void)
{
    int ends[2], again[2], old;
    char bytes[8] = {0};
    must(!pipe(ends), "pipe");
    ring_put(&ring, reading(ends[0], bytes, sizeof bytes, 1));
    must(ring_enter(&ring, 0) == 1, "submit");
    old = ends[0];
    must(!close(ends[0]) && !pipe(again), "close, and have the number again");
    must(write(again[1], "wrong", 5) == 5 && write(ends[1], "right", 5) == 5, "write");
    struct completion done = ring_next(&ring);
    tell("closed %d: %d %s\n", again[0] == old, done.res, bytes);
    close(again[0]);
    close(again[1]);
    close(ends[1]);
}

static void overflow(void)
{
    uint64_t sum = 0;
    for (int i = 0; i < 24; i++)
        ring_put(&ring, nop(i));
    must(ring_enter(&ring, 0) == 8, "submit");
    for (int i = 0; i < 24; i++)
        sum = sum * 31 + ring_next(&ring).user_data;
    tell("overflow %lu\n", sum);
}

static void readiness(void)
{
    struct __kernel_timespec time = {.tv_nsec = 200000};
    ring_put(&ring, (struct io_uring_sqe){.opcode = IORING_OP_TIMEOUT, .addr = (uintptr_t)&time, .len = 1, .user_data = 5});
    must(ring_enter(&ring, 0) == 1, "submit");
    struct pollfd polled = {.fd = ring.fd, .events = POLLIN};
    int n;
    while ((n = poll(&polled, 1, 10000)) < 0)
        must(errno == EINTR, "poll");
    struct completion done = ring_next(&ring);
    int found = polled.revents, left = poll(&polled, 1, 0);
    tell("poll %d %x, %lu %d, then %d\n", n, found, done.user_data, done.res, left);
}

/* What one ring waits for the other one writes. */
static void two_rings(void)
{
    int ends[2];
    char byte = 0;
    struct __kernel_timespec time = {.tv_nsec = 200000};
    must(!pipe(ends), "pipe");
    ring_put(&other, (struct io_uring_sqe){
        .opcode = IORING_OP_TIMEOUT, .addr = (uintptr_t)&time, .len = 1, .user_data = 6, .timeout_flags = IORING_TIMEOUT_ETIME_SUCCESS, .flags = IOSQE_IO_LINK,
    });
    ring_put(&other, (struct io_uring_sqe){.opcode = IORING_OP_WRITE, .fd = ends[1], .addr = (uintptr_t)"x", .len = 1, .off = -1, .user_data = 7});
    must(ring_enter(&other, 0) == 2, "submit to the other ring");
    ring_put(&ring, reading(ends[0], &byte, 1, 8));
    struct completion read = ring_next(&ring), timed = ring_next(&other), written = ring_next(&other);
    tell("two rings: %lu %d %c, %lu %d, %lu %d\n", read.user_data, read.res, byte, timed.user_data, timed.res, written.user_data, written.res);
    close(ends[0]);
    close(ends[1]);
}

static void closed_eventfd(void)
{
    int bell = eventfd(0, EFD_CLOEXEC), same = dup(bell);
    uint64_t count = 0;
    must(bell >= 0 && same >= 0, "eventfd");
    must(!syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_EVENTFD, &bell, 1), "register the eventfd");
    must(!close(bell), "close");
    ring_put(&ring, nop(1));
    ring_next(&ring);
    must(!syscall(SYS_io_uring_register, ring.fd, IORING_UNREGISTER_EVENTFD, NULL, 0), "unregister the eventfd");
    ring_put(&ring, nop(2));
    ring_next(&ring);
    must(read(same, &count, 8) == 8, "read");
    tell("eventfd %lu\n", count);
    close(same);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 50;
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
    must(!sigaction(SIGALRM, &action, NULL), "sigaction");
    for (int i = 0; i < rounds; i++) {
        ring_make(&ring, 8, 0);
        ring_make(&other, 4, IORING_SETUP_CLAMP);
        interruptions();
        closed_files();
        overflow();
        readiness();
        two_rings();
        closed_eventfd();
        munmap(ring.entries, 512);
        must(!close(ring.fd) && !close(other.fd), "close the rings");
    }
    return 0;
}
