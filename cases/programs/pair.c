/* Talks to itself through a Unix socket pair, a pipe and an eventfd; prints a running checksum of what came through. */
#define _GNU_SOURCE
#include "tell.h"
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 1000, ends[2], line[2], counter;
    must(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends), "socketpair");
    must(!pipe2(line, O_CLOEXEC), "pipe2");
    must((counter = eventfd(0, EFD_NONBLOCK)) >= 0, "eventfd");
    uint64_t random = 7, sum = 0xcbf29ce484222325, counted = 0;
    for (int i = 0; i < rounds; i++) {
        char sent[600], got[600];
        size_t len = 1 + next(&random) % sizeof sent;
        for (size_t j = 0; j < len; j++)
            sent[j] = next(&random);
        must(send(ends[0], sent, len, 0) == (ssize_t)len, "send");
        must(recv(ends[1], got, sizeof got, 0) == (ssize_t)len && !memcmp(sent, got, len), "recv");
        must(write(line[1], got, len) == (ssize_t)len, "write to the pipe");
        must(read(line[0], sent, sizeof sent) == (ssize_t)len && !memcmp(sent, got, len), "read from the pipe");
        uint64_t one = len, back = 0;
        must(write(counter, &one, sizeof one) == sizeof one, "write to the eventfd");
        must(read(counter, &back, sizeof back) == sizeof back && back == one, "read from the eventfd");
        must(read(counter, &back, sizeof back) == -1 && errno == EAGAIN, "an eventfd that is not empty");
        counted += len;
        sum = mix(sum, got, len);
        if (i % 10 == 0)
            tell("%d %lu %016lx\n", i, counted, sum);
    }
    return 0;
}
