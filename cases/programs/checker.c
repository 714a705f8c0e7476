/* Reads the numbered lines that `counter` writes and says where the first one is missing, doubled or torn.
 * checker [read|readv|recv|poll|select|epoll|ready|peek|byte]: how it reads. Prints progress every 1000 lines. */
#define _GNU_SOURCE
#include "tell.h"
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>

static int queue = -1;

static void await(const char *how)
{
    if (!strcmp(how, "poll") || !strcmp(how, "ready")) {
        struct pollfd polled = {.fd = 0, .events = POLLIN};
        must(poll(&polled, 1, -1) == 1, "poll");
    } else if (!strcmp(how, "select")) {
        fd_set set;
        FD_ZERO(&set);
        FD_SET(0, &set);
        must(select(1, &set, NULL, NULL, NULL) == 1, "select");
    } else if (!strcmp(how, "epoll")) {
        struct epoll_event event = {.events = EPOLLIN};
        if (queue < 0) {
            must((queue = epoll_create1(0)) >= 0, "epoll_create1");
            must(!epoll_ctl(queue, EPOLL_CTL_ADD, 0, &event), "epoll_ctl");
        }
        must(epoll_wait(queue, &event, 1, -1) == 1, "epoll_wait");
    }
}

static ssize_t take(const char *how, char *to, size_t room)
{
    await(how);
    if (!strcmp(how, "readv")) {
        struct iovec parts[2] = {{to, room / 3}, {to + room / 3, room - room / 3}};
        return readv(0, parts, 2);
    }
    if (!strcmp(how, "recv"))
        return recv(0, to, room, 0);
    if (!strcmp(how, "byte"))
        return read(0, to, 1);
    if (!strcmp(how, "ready")) {
        /* What FIONREAD promises must be there at once. */
        int ready = 0;
        must(!ioctl(0, FIONREAD, &ready), "FIONREAD");
        size_t want = ready > 0 && (size_t)ready < room ? (size_t)ready : room;
        ssize_t n = read(0, to, want);
        must(ready == 0 || n == (ssize_t)want, "fewer bytes than FIONREAD promised");
        return n;
    }
    if (!strcmp(how, "peek")) {
        static char seen[1 << 16];
        ssize_t peeked = recv(0, seen, room, MSG_PEEK), n = peeked > 0 ? recv(0, to, peeked, 0) : peeked;
        must(n == peeked && (n <= 0 || !memcmp(seen, to, n)), "the peeked bytes were others");
        return n;
    }
    return read(0, to, room);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "read";
    static char bytes[1 << 16];
    uint64_t random = 88172645463325252;
    long line = 0, column = 0;
    char expected[16] = "";
    for (;;) {
        ssize_t n = take(how, bytes, 1 + next(&random) % 5000);
        must(n >= 0, "read");
        if (n == 0)
            break;
        for (ssize_t i = 0; i < n; i++) {
            if (column == 0)
                snprintf(expected, sizeof expected, "%08ld\n", line);
            if (bytes[i] != expected[column]) {
                tell("line %ld column %ld: expected %.8s, piece \"%.*s\"\n", line, column, expected, 40, bytes + i);
                return 1;
            }
            if (++column == 9) {
                column = 0;
                if (++line % 1000 == 0)
                    tell("%ld\n", line);
            }
        }
    }
    tell("%ld lines and %ld bytes, all there once\n", line, column);
    return 0;
}
