/* The counting server of tcp_server.c on a ring: accepts, receives and sends are entries. It learns of completions by waiting in
 * the ring, or (epoll) by the ring's descriptor in an epoll, or (eventfd) by a registered eventfd. ring_server PORT [ring|epoll|eventfd|multishot] */
#define _GNU_SOURCE
#include "ring.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

enum { MOST = 64, RECEIVED = 1 << 16, SENT = 2 << 16, ACCEPTED = 3 << 16, KIND = 3 << 16 };

static struct peer {
    int fd, len, sending, queued;
    long total;
    char line[64], bytes[256], out[2][16384];
} peers[MOST];
static struct ring ring;
static int listener, queue = -1, bell = -1, multishot, quit;
static long answered;

static void want_peer(void)
{
    ring_put(&ring, (struct io_uring_sqe){
        .opcode = IORING_OP_ACCEPT, .fd = listener, .user_data = ACCEPTED, .accept_flags = SOCK_CLOEXEC,
        .ioprio = multishot ? IORING_ACCEPT_MULTISHOT : 0,
    });
}

static void want_bytes(struct peer *peer)
{
    ring_put(&ring, (struct io_uring_sqe){
        .opcode = IORING_OP_RECV, .fd = peer->fd, .addr = (uintptr_t)peer->bytes, .len = sizeof peer->bytes,
        .user_data = RECEIVED | (peer - peers),
    });
}

/* One send at a time: what comes meanwhile is queued behind it. */
static void send_queued(struct peer *peer)
{
    if (peer->sending || !peer->queued)
        return;
    memcpy(peer->out[1], peer->out[0], peer->queued);
    peer->sending = peer->queued;
    peer->queued = 0;
    ring_put(&ring, (struct io_uring_sqe){
        .opcode = IORING_OP_SEND, .fd = peer->fd, .addr = (uintptr_t)peer->out[1], .len = peer->sending,
        .msg_flags = MSG_WAITALL, .user_data = SENT | (peer - peers),
    });
}

static void answer(struct peer *peer)
{
    if (!strcmp(peer->line, "quit")) {
        quit = 1;
        return;
    }
    long number = atol(peer->line);
    peer->total += number;
    answered++;
    int room = sizeof peer->out[0] - peer->queued;
    int len = snprintf(peer->out[0] + peer->queued, room, "%ld %ld\n", number, peer->total);
    must(len < room, "too many answers");
    peer->queued += len;
}

static void received(struct peer *peer, int n)
{
    must(n >= 0 || n == -ECONNRESET, "receive");
    if (n <= 0) {
        must(!close(peer->fd), "close");
        peer->fd = 0;
        return;
    }
    for (int i = 0; i < n; i++) {
        if (peer->bytes[i] != '\n') {
            must(peer->len < (int)sizeof peer->line - 1, "a line too long");
            peer->line[peer->len++] = peer->bytes[i];
            continue;
        }
        peer->line[peer->len] = 0;
        peer->len = 0;
        answer(peer);
    }
    want_bytes(peer);
    send_queued(peer);
}

static void accepted(int fd, unsigned flags)
{
    must(fd > 0, "accept");
    must(!setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)), "TCP_NODELAY");
    struct peer *peer = peers;
    while (peer->fd || peer->sending)
        must(++peer < peers + MOST, "too many connections");
    memset(peer, 0, sizeof *peer);
    peer->fd = fd;
    want_bytes(peer);
    if (!(flags & IORING_CQE_F_MORE))
        want_peer();
}

static void await(void)
{
    if (queue < 0 && bell < 0) {
        must(ring_enter(&ring, 1) >= 0, "io_uring_enter");
        return;
    }
    if (ring.queued)
        must(ring_enter(&ring, 0) > 0, "submit");
    if (queue >= 0) {
        struct epoll_event event;
        int n = epoll_wait(queue, &event, 1, -1);
        must((n == 1 && event.data.fd == ring.fd) || (n < 0 && errno == EINTR), "epoll_wait");
        return;
    }
    struct pollfd polled = {.fd = bell, .events = POLLIN};
    /* The kernel's own work for the ring may cut a wait short. */
    int n = poll(&polled, 1, -1);
    if (n < 0 && errno == EINTR)
        return;
    must(n == 1, "poll");
    uint64_t count;
    must(read(bell, &count, 8) == 8, "read the eventfd");
}

int main(int argc, char **argv)
{
    const char *how = argc > 2 ? argv[2] : "ring";
    int yes = 1;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1]))};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    must((listener = socket(AF_INET, SOCK_STREAM, 0)) >= 0, "socket");
    must(!setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes), "SO_REUSEADDR");
    must(!bind(listener, (struct sockaddr *)&at, sizeof at), "bind");
    must(!listen(listener, 16), "listen");
    ring_make(&ring, 32, 0);
    multishot = !strcmp(how, "multishot");
    if (!strcmp(how, "epoll")) {
        struct epoll_event event = {.events = EPOLLIN, .data.fd = ring.fd};
        must((queue = epoll_create1(EPOLL_CLOEXEC)) >= 0, "epoll_create1");
        must(!epoll_ctl(queue, EPOLL_CTL_ADD, ring.fd, &event), "epoll_ctl");
    }
    if (!strcmp(how, "eventfd")) {
        must((bell = eventfd(0, EFD_CLOEXEC)) >= 0, "eventfd");
        must(!syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_EVENTFD, &bell, 1), "register the eventfd");
    }
    want_peer();
    while (!quit) {
        struct completion done;
        await();
        while (ring_take(&ring, &done) && !quit) {
            struct peer *peer = &peers[done.user_data & 0xffff];
            switch (done.user_data & KIND) {
            case ACCEPTED:
                accepted(done.res, done.flags);
                break;
            case RECEIVED:
                received(peer, done.res);
                break;
            default:
                must(done.res == peer->sending || !peer->fd, "send everything");
                peer->sending = 0;
                if (peer->fd)
                    send_queued(peer);
            }
        }
    }
    /* The kernel takes its time to give back what a ring holds: nobody is to be connected by it meanwhile. */
    must(!shutdown(listener, SHUT_RDWR), "shutdown");
    tell("answered %ld lines\n", answered);
    return 0;
}
