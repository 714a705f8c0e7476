/* Threads that all write at once, each in another way, while one reads and checks: printers ROUNDS.
 * write to a pipe, send to a stream, sendmsg without waiting, writev of more than a pipe holds; and every writer's byte in a
 * pipe of all. What is written once must be read once, in the order of its writer. */
#define _GNU_SOURCE
#include "tell.h"
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum { WRITERS = 4, RECORDS = 40, SMALL = 24, LARGE = 5000 };

struct record {
    uint32_t writer, number;
    uint64_t sum[2];
};

static int out[WRITERS], in[WRITERS + 1], common;
static int rounds;
static pthread_barrier_t start;

static struct record record(uint32_t writer, uint32_t number)
{
    struct record r = {writer, number, {0}};
    r.sum[0] = mix(number, &r.writer, 4), r.sum[1] = mix(writer, &r.number, 4);
    return r;
}

static size_t length(int writer)
{
    return writer == 3 ? LARGE : SMALL;
}

static void put(int writer, const char *bytes)
{
    size_t len = length(writer);
    if (writer == 0) {
        must(write(out[0], bytes, len) == (ssize_t)len, "write");
    } else if (writer == 1) {
        must(send(out[1], bytes, len, MSG_NOSIGNAL) == (ssize_t)len, "send");
    } else if (writer == 2) {
        struct iovec parts[2] = {{(void *)bytes, 10}, {(void *)(bytes + 10), len - 10}};
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
        ssize_t n;
        while ((n = sendmsg(out[2], &message, MSG_DONTWAIT)) < 0) {
            struct pollfd room = {.fd = out[2], .events = POLLOUT};
            must(errno == EAGAIN && poll(&room, 1, -1) == 1, "sendmsg");
        }
        must(n == (ssize_t)len, "a short message");
    } else {
        struct iovec parts[2] = {{(void *)bytes, SMALL}, {(void *)(bytes + SMALL), len - SMALL}};
        must(writev(out[3], parts, 2) == (ssize_t)len, "writev");
    }
}

static void *print(void *arg)
{
    int writer = (int)(uintptr_t)arg;
    static char room[WRITERS][LARGE];
    char *bytes = room[writer], letter = 'a' + writer;
    for (int round = 0; round < rounds; round++) {
        pthread_barrier_wait(&start);
        for (int i = 0; i < RECORDS; i++) {
            struct record r = record(writer, round * RECORDS + i);
            for (size_t at = 0; at < length(writer); at += sizeof r)
                memcpy(bytes + at, &r, length(writer) - at < sizeof r ? length(writer) - at : sizeof r);
            put(writer, bytes);
            must(write(common, &letter, 1) == 1, "write a byte");
        }
    }
    return arg;
}

static void wide_pipe(int *from, int *to, int size)
{
    int ends[2];
    must(!pipe2(ends, O_CLOEXEC), "pipe2");
    if (size)
        must(fcntl(ends[1], F_SETPIPE_SZ, size) >= size, "F_SETPIPE_SZ");
    *from = ends[0], *to = ends[1];
}

static void connect_all(void)
{
    int ends[2];
    wide_pipe(&in[0], &out[0], 4096);
    must(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends), "socketpair");
    in[1] = ends[0], out[1] = ends[1];
    must(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), "socketpair");
    in[2] = ends[0], out[2] = ends[1];
    wide_pipe(&in[3], &out[3], 4096);
    wide_pipe(&in[WRITERS], &common, 0);
}

/* Reads what there is of a writer's records: how many are whole. */
static int check(int writer, uint32_t *number)
{
    static char room[WRITERS][LARGE];
    static size_t have[WRITERS];
    size_t len = length(writer);
    ssize_t n = read(in[writer], room[writer] + have[writer], len - have[writer]);
    must(n > 0, "read");
    have[writer] += n;
    if (have[writer] < len)
        return 0;
    have[writer] = 0;
    struct record want = record(writer, *number);
    for (size_t at = 0; at < len; at += sizeof want) {
        size_t some = len - at < sizeof want ? len - at : sizeof want;
        if (memcmp(room[writer] + at, &want, some)) {
            struct record *got = (struct record *)(room[writer] + at);
            tell("writer %d: %u in the place of %u, byte %zu\n", writer, got->number, *number, at);
            _exit(2);
        }
    }
    ++*number;
    return 1;
}

int main(int argc, char **argv)
{
    rounds = argc > 1 ? atoi(argv[1]) : 100;
    connect_all();
    must(!pthread_barrier_init(&start, 0, WRITERS + 1), "barrier");
    pthread_t all[WRITERS];
    uint32_t numbers[WRITERS] = {0}, letters[WRITERS] = {0};
    for (int i = 0; i < WRITERS; i++)
        must(!pthread_create(&all[i], 0, print, (void *)(uintptr_t)i), "create");
    for (int round = 0; round < rounds; round++) {
        pthread_barrier_wait(&start);
        int left = 2 * WRITERS * RECORDS;
        while (left > 0) {
            struct pollfd ready[WRITERS + 1];
            for (int i = 0; i <= WRITERS; i++)
                ready[i] = (struct pollfd){.fd = in[i], .events = POLLIN};
            must(poll(ready, WRITERS + 1, -1) > 0, "poll");
            for (int i = 0; i < WRITERS; i++)
                if (ready[i].revents & POLLIN)
                    left -= check(i, &numbers[i]);
            if (ready[WRITERS].revents & POLLIN) {
                char some[64];
                ssize_t n = read(in[WRITERS], some, sizeof some);
                must(n > 0, "read bytes");
                for (ssize_t i = 0; i < n; i++)
                    letters[some[i] - 'a']++;
                left -= n;
            }
        }
        tell("round %d: %u %u %u %u, %u %u %u %u\n", round, numbers[0], numbers[1], numbers[2], numbers[3], letters[0],
             letters[1], letters[2], letters[3]);
    }
    for (int i = 0; i < WRITERS; i++)
        must(!pthread_join(all[i], 0), "join");
    return 0;
}
