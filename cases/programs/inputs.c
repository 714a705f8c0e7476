/* Takes standard input, a pipe or a socket, in every way there is, and asks beforehand in every way whether there is any.
 * Shows a sum after every so many bytes, so that most reads have no output between them. */
#define _GNU_SOURCE
#include "tell.h"
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

enum { BLOCK = 3000, MOST = 700 };

static uint64_t state = 77;
static int level, is_socket;

static unsigned pick(unsigned n)
{
    return next(&state) % n;
}

static int watch(uint32_t events)
{
    int fd = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = { .events = events, .data.u64 = 4242 };
    must(fd >= 0 && !epoll_ctl(fd, EPOLL_CTL_ADD, 0, &event), "epoll");
    return fd;
}

static void await(int fd)
{
    struct epoll_event event;
    int n;
    while ((n = epoll_wait(fd, &event, 1, -1)) < 0)
        must(errno == EINTR, "epoll_wait");
    must(n == 1 && event.data.u64 == 4242 && event.events & (EPOLLIN | EPOLLHUP), "epoll_wait");
}

/* Returns as soon as there is something to be read. */
static void await_input(void)
{
    struct pollfd p = { .fd = 0, .events = POLLIN };
    fd_set set;
    FD_ZERO(&set);
    FD_SET(0, &set);
    switch (pick(6)) {
    case 0:
        must(poll(&p, 1, -1) == 1 && p.revents & (POLLIN | POLLHUP), "poll");
        break;
    case 1:
        must(ppoll(&p, 1, NULL, NULL) == 1 && p.revents & (POLLIN | POLLHUP), "ppoll");
        break;
    case 2:
        must(select(1, &set, NULL, NULL, NULL) == 1 && FD_ISSET(0, &set), "select");
        break;
    case 3:
        must(pselect(1, &set, NULL, NULL, NULL, NULL) == 1 && FD_ISSET(0, &set), "pselect");
        break;
    case 4:
        await(level);
        break;
    default:
        /* The read itself waits. */
        break;
    }
}

static ssize_t take(unsigned char *bytes, size_t len)
{
    struct iovec parts[2] = { { bytes, len / 3 }, { bytes + len / 3, len - len / 3 } };
    struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };
    switch (pick(is_socket ? 4 : 2)) {
    case 0:
        return read(0, bytes, len);
    case 1:
        return readv(0, parts, 2);
    case 2:
        return recv(0, bytes, len, 0);
    default:
        return recvmsg(0, &message, 0);
    }
}

int main(void)
{
    static unsigned char bytes[MOST], peeked[MOST];
    struct stat st;
    must(!fstat(0, &st), "fstat");
    is_socket = S_ISSOCK(st.st_mode);
    level = watch(EPOLLIN);
    uint64_t total = 0, sum = 0xcbf29ce484222325;
    for (;;) {
        size_t len = 1 + pick(MOST);
        await_input();
        ssize_t seen = -1;
        int count = -1;
        if (pick(3) == 0)
            must(!ioctl(0, FIONREAD, &count), "FIONREAD");
        if (is_socket && pick(4) == 0)
            must((seen = recv(0, peeked, len, MSG_PEEK)) >= 0, "MSG_PEEK");
        ssize_t n = take(bytes, len);
        must(n >= 0, "a read");
        if (!n)
            break;
        must(seen < 0 || !memcmp(bytes, peeked, seen < n ? seen : n), "what was peeked at comes");
        must(count < 1 || n >= 1, "what was counted comes");
        for (ssize_t i = 0; i < n; i++) {
            sum = mix(sum, bytes + i, 1);
            if (++total % BLOCK == 0)
                tell("%lu %016lx\n", total, sum);
        }
    }
    tell("%lu %016lx, the end\n", total, sum);
    return 0;
}
