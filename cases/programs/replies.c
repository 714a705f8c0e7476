/* A server of one thread that takes one request at a time from each connection and wants the next one after its reply only. A request is
 * "N HOW SIZE": the reply is "N SIZE SUM COUNT", SUM being that of the connection's numbers and COUNT that of all requests so far, and SIZE
 * bytes, sent in the way HOW says. Sockets do not block unless told, and whoever sends less than all waits for room. "quit" ends it.
 * replies PORT FILE [level|blocking] */
#define _GNU_SOURCE
#include "tell.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum { MOST = 64, LARGEST = 1 << 20 };

static struct peer {
    int fd, len, head_len, how, wants_room;
    long sum;
    size_t size, sent;
    char line[64], head[64];
} peers[MOST];
static char bytes[LARGEST];
static int listener, queue, file, level, blocking, quit;
static long answered;

static void watch(struct peer *peer, int change, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.u32 = peer - peers + 1};
    must(!epoll_ctl(queue, change, peer->fd, &event), "epoll_ctl");
}

static void leave(struct peer *peer)
{
    must(!close(peer->fd), "close");
    *peer = (struct peer){0};
}

/* One call for what is left of head and body. */
static ssize_t send_some(struct peer *peer)
{
    size_t head = peer->sent < (size_t)peer->head_len ? peer->head_len - peer->sent : 0;
    size_t at = peer->sent - (peer->head_len - head), half = (peer->size - at) / 2;
    struct iovec parts[] = {
        {peer->head + peer->head_len - head, head}, {bytes + at, half}, {bytes + at + half, peer->size - at - half}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 3};
    off_t from = at;
    switch (peer->how) {
    case 'v':
        return writev(peer->fd, parts, 3);
    case 'm':
        return sendmsg(peer->fd, &message, MSG_NOSIGNAL);
    case 'f':
        if (head)
            return send(peer->fd, parts[0].iov_base, head, MSG_MORE | MSG_NOSIGNAL);
        return sendfile(peer->fd, file, &from, peer->size - at);
    case 'o':
        if (head)
            return write(peer->fd, parts[0].iov_base, head);
        must(lseek(file, at, SEEK_SET) == (off_t)at, "lseek");
        return sendfile(peer->fd, file, NULL, peer->size - at);
    default:
        if (head)
            return send(peer->fd, parts[0].iov_base, head, 0);
        return write(peer->fd, bytes + at, peer->size - at);
    }
}

/* SIGSTOP has sendfile come back with less than there is room for. */
static int is_cut_short(const struct peer *peer)
{
    return peer->how == 'f' || peer->how == 'o';
}

/* False: it has to wait for room. What sends less than all has met the end of it, unless it may have been cut short. */
static int reply(struct peer *peer)
{
    size_t total = peer->head_len + peer->size;
    while (peer->sent < total) {
        int with_head = peer->sent < (size_t)peer->head_len && peer->how != 'v' && peer->how != 'm';
        size_t wanted = with_head ? peer->head_len - peer->sent : total - peer->sent;
        ssize_t n = send_some(peer);
        if (n < 0 && errno == EAGAIN)
            return 0;
        if (n < 0)
            return -1;
        peer->sent += n;
        if ((size_t)n < wanted && !blocking && !is_cut_short(peer))
            return 0;
    }
    return 1;
}

/* One request, and nothing beside it. */
static void answer(struct peer *peer)
{
    char how;
    long number, size;
    char *end = memchr(peer->line, '\n', peer->len);
    must(end == peer->line + peer->len - 1, "a request before the reply");
    *end = 0;
    if (!strcmp(peer->line, "quit")) {
        quit = 1;
        return;
    }
    must(sscanf(peer->line, "%ld %c %ld", &number, &how, &size) == 3 && size <= LARGEST, "a request");
    peer->sum += number;
    answered++;
    peer->head_len = snprintf(peer->head, sizeof peer->head, "%ld %ld %ld %ld\n", number, size, peer->sum, answered);
    peer->size = size;
    peer->sent = peer->len = 0;
    peer->how = how;
}

static void serve(struct peer *peer)
{
    for (;;) {
        if (peer->head_len) {
            int done = reply(peer);
            if (done < 0)
                return leave(peer);
            if (level && (done == 0) != peer->wants_room)
                watch(peer, EPOLL_CTL_MOD, EPOLLIN | (done ? 0 : EPOLLOUT));
            peer->wants_room = !done;
            if (!done)
                return;
            peer->head_len = 0;
        }
        ssize_t n = recv(peer->fd, peer->line + peer->len, sizeof peer->line - 1 - peer->len, MSG_DONTWAIT);
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0)
            return leave(peer);
        peer->len += n;
        if (memchr(peer->line, '\n', peer->len))
            answer(peer);
        if (quit)
            return;
    }
}

static void welcome(void)
{
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | (blocking ? 0 : SOCK_NONBLOCK));
    if (fd < 0 && errno == EAGAIN)
        return;
    must(fd > 0, "accept4");
    must(!setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)), "TCP_NODELAY");
    struct peer *peer = peers;
    while (peer->fd)
        must(++peer < peers + MOST, "too many connections");
    *peer = (struct peer){.fd = fd};
    watch(peer, EPOLL_CTL_ADD, level ? EPOLLIN : EPOLLIN | EPOLLOUT | EPOLLET);
}

int main(int argc, char **argv)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1]))};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    level = argc > 3 && !strcmp(argv[3], "level");
    blocking = argc > 3 && !strcmp(argv[3], "blocking");
    must((file = open(argv[2], O_RDONLY)) >= 0, argv[2]);
    must(pread(file, bytes, LARGEST, 0) == LARGEST, "a short file");
    must((listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)) >= 0, "socket");
    must(!setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)), "SO_REUSEADDR");
    must(!bind(listener, (struct sockaddr *)&at, sizeof at), "bind");
    must(!listen(listener, 16), "listen");
    must((queue = epoll_create1(EPOLL_CLOEXEC)) >= 0, "epoll_create1");
    struct epoll_event first = {.events = EPOLLIN};
    must(!epoll_ctl(queue, EPOLL_CTL_ADD, listener, &first), "epoll_ctl");
    while (!quit) {
        struct epoll_event events[8];
        int n = epoll_wait(queue, events, 8, -1);
        // Also whoever is stopped and goes on.
        must(n > 0 || (n < 0 && errno == EINTR), "epoll_wait");
        for (int i = 0; i < n && !quit; i++)
            if (!events[i].data.u32)
                welcome();
            else if (peers[events[i].data.u32 - 1].fd)
                serve(&peers[events[i].data.u32 - 1]);
    }
    tell("answered %ld requests\n", answered);
    return 0;
}
