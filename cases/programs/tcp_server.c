/* A single-threaded TCP server that counts: to each line "N" it answers "N TOTAL", TOTAL being the sum of that
 * connection's numbers. "quit" ends it. tcp_server PORT [poll|select|epoll|edge] */
#define _GNU_SOURCE
#include "tell.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>

enum { MOST = 64 };

static struct peer {
    int fd, len;
    long total, lines;
    char line[64];
} peers[MOST];
static int listener, queue = -1, quit;
static long answered;

static void answer(struct peer *peer)
{
    char reply[64];
    if (!strcmp(peer->line, "quit")) {
        quit = 1;
        return;
    }
    long number = atol(peer->line);
    peer->total += number;
    peer->lines++;
    answered++;
    put_all(peer->fd, reply, snprintf(reply, sizeof reply, "%ld %ld\n", number, peer->total));
}

/* Takes what is there; with `all`, until nothing is left. */
static void serve(struct peer *peer, int all)
{
    char bytes[256];
    do {
        ssize_t n = recv(peer->fd, bytes, sizeof bytes, MSG_DONTWAIT);
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            must(!close(peer->fd), "close");
            peer->fd = 0;
            return;
        }
        for (ssize_t i = 0; i < n; i++) {
            if (bytes[i] != '\n') {
                must(peer->len < (int)sizeof peer->line - 1, "a line too long");
                peer->line[peer->len++] = bytes[i];
                continue;
            }
            peer->line[peer->len] = 0;
            peer->len = 0;
            answer(peer);
        }
    } while (all && !quit);
}

static void welcome(int all)
{
    do {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0 && errno == EAGAIN)
            return;
        must(fd > 0, "accept4");
        must(!setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)), "TCP_NODELAY");
        struct peer *peer = peers;
        while (peer->fd)
            must(++peer < peers + MOST, "too many connections");
        *peer = (struct peer){.fd = fd};
        if (queue >= 0) {
            struct epoll_event event = {.events = EPOLLIN | (all ? EPOLLET : 0), .data.u32 = peer - peers + 1};
            must(!epoll_ctl(queue, EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
        }
    } while (all);
}

static void round_of_poll(void)
{
    struct pollfd polled[MOST + 1] = {{.fd = listener, .events = POLLIN}};
    for (int i = 0; i < MOST; i++)
        polled[i + 1] = (struct pollfd){.fd = peers[i].fd ? peers[i].fd : -1, .events = POLLIN};
    must(poll(polled, MOST + 1, -1) > 0, "poll");
    for (int i = 0; i < MOST; i++)
        if (polled[i + 1].revents)
            serve(&peers[i], 0);
    if (polled[0].revents)
        welcome(0);
}

static void round_of_select(void)
{
    fd_set set;
    int highest = listener;
    FD_ZERO(&set);
    FD_SET(listener, &set);
    for (int i = 0; i < MOST; i++)
        if (peers[i].fd) {
            FD_SET(peers[i].fd, &set);
            highest = peers[i].fd > highest ? peers[i].fd : highest;
        }
    must(select(highest + 1, &set, NULL, NULL, NULL) > 0, "select");
    for (int i = 0; i < MOST; i++)
        if (peers[i].fd && FD_ISSET(peers[i].fd, &set))
            serve(&peers[i], 0);
    if (FD_ISSET(listener, &set))
        welcome(0);
}

static void round_of_epoll(int edge)
{
    struct epoll_event events[8];
    int n = epoll_wait(queue, events, 8, -1);
    must(n > 0, "epoll_wait");
    for (int i = 0; i < n; i++)
        if (events[i].data.u32)
            serve(&peers[events[i].data.u32 - 1], edge);
        else
            welcome(edge);
}

int main(int argc, char **argv)
{
    const char *how = argc > 2 ? argv[2] : "poll";
    int yes = 1, edge = !strcmp(how, "edge");
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1]))};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    must((listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)) >= 0, "socket");
    must(!setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes), "SO_REUSEADDR");
    must(!bind(listener, (struct sockaddr *)&at, sizeof at), "bind");
    must(!listen(listener, 16), "listen");
    if (edge || !strcmp(how, "epoll")) {
        struct epoll_event event = {.events = EPOLLIN | (edge ? EPOLLET : 0)};
        must((queue = epoll_create1(EPOLL_CLOEXEC)) >= 0, "epoll_create1");
        must(!epoll_ctl(queue, EPOLL_CTL_ADD, listener, &event), "epoll_ctl");
    }
    while (!quit) {
        if (queue >= 0)
            round_of_epoll(edge);
        else if (!strcmp(how, "select"))
            round_of_select();
        else
            round_of_poll();
    }
    tell("answered %ld lines\n", answered);
    return 0;
}
