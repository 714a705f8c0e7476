/* Shuts sockets whose state is another one afterwards, so that to shut them twice would be an error: listeners, and the second end of a
   connection. Prints what each answered, and what then comes of a third time. */
#define _GNU_SOURCE
#include "tell.h"
#include <arpa/inet.h>
#include <sys/socket.h>

static int listens(struct sockaddr_in *at)
{
    socklen_t len = sizeof *at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    *at = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    must(fd >= 0 && !bind(fd, (void *)at, sizeof *at) && !listen(fd, 1), "listen");
    must(!getsockname(fd, (void *)at, &len), "getsockname");
    return fd;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 100;
    for (int i = 0; i < rounds; i++) {
        struct sockaddr_in at;
        char byte = i, got;
        int listener = listens(&at), from = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), to;
        int never = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        must(shutdown(never, SHUT_RDWR) && errno == ENOTCONN, "shut what was never open");
        must(!connect(from, (void *)&at, sizeof at) && (to = accept(listener, NULL, NULL)) >= 0, "connect");
        must(!shutdown(listener, SHUT_RDWR), "shut a listener");
        must(shutdown(listener, SHUT_RDWR) && errno == ENOTCONN, "shut a listener twice");
        must(send(from, &byte, 1, 0) == 1 && !shutdown(from, SHUT_WR), "shut one end");
        must(recv(to, &got, 1, 0) == 1 && got == byte && recv(to, &got, 1, 0) == 0, "the end of what was sent");
        must(!shutdown(to, SHUT_RDWR), "shut the other end");
        must(recv(from, &got, 1, 0) == 0, "the end of everything");
        must(!close(from) && !close(to) && !close(listener) && !close(never), "close");
        tell("%d\n", i);
    }
    return 0;
}
