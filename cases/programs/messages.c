/* Sends itself several messages with one call, and receives several with one: over a Unix socket pair and over UDP. */
#define _GNU_SOURCE
#include "tell.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

enum { MOST = 8, BYTES = 300 };

static char text[2][MOST][BYTES];
static struct iovec parts[2][MOST];
static struct mmsghdr messages[2][MOST];

static void udp(int ends[2])
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    must((ends[1] = socket(AF_INET, SOCK_DGRAM, 0)) >= 0 && !bind(ends[1], (void *)&at, len), "bind");
    must(!getsockname(ends[1], (void *)&at, &len), "getsockname");
    must((ends[0] = socket(AF_INET, SOCK_DGRAM, 0)) >= 0 && !connect(ends[0], (void *)&at, len), "connect");
}

static void round_trip(const int ends[2], int count, uint64_t *random, uint64_t *sum)
{
    for (int i = 0; i < count; i++) {
        size_t len = 1 + next(random) % (BYTES - 1);
        for (size_t j = 0; j < len; j++)
            text[0][i][j] = next(random);
        parts[0][i] = (struct iovec){text[0][i], len};
        messages[0][i] = (struct mmsghdr){.msg_hdr = {.msg_iov = &parts[0][i], .msg_iovlen = 1}};
    }
    for (int sent = 0; sent < count;) {
        int n = sendmmsg(ends[0], messages[0] + sent, count - sent, 0);
        must(n > 0, "sendmmsg");
        for (int i = sent; i < sent + n; i++)
            must(messages[0][i].msg_len == parts[0][i].iov_len, "the length of what was sent");
        sent += n;
    }
    for (int got = 0; got < count;) {
        for (int i = 0; i < MOST; i++) {
            parts[1][i] = (struct iovec){text[1][i], BYTES};
            messages[1][i] = (struct mmsghdr){.msg_hdr = {.msg_iov = &parts[1][i], .msg_iovlen = 1}};
        }
        /* As many as there must be, or as many as there are. */
        struct timespec time = {.tv_sec = 5};
        int n = count % 2 ? recvmmsg(ends[1], messages[1], count - got, 0, count % 3 ? &time : NULL)
                          : recvmmsg(ends[1], messages[1], MOST, MSG_WAITFORONE, NULL);
        must(n > 0, "recvmmsg");
        for (int i = 0; i < n; i++, got++) {
            size_t len = messages[1][i].msg_len;
            must(got < count && len == parts[0][got].iov_len && !memcmp(text[0][got], text[1][i], len), "a message");
            *sum = mix(*sum, text[1][i], len);
        }
    }
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 1000, pair[2], net[2];
    must(!socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), "socketpair");
    udp(net);
    uint64_t random = 7, sum = 0xcbf29ce484222325;
    for (int i = 0; i < rounds; i++) {
        round_trip(i % 2 ? pair : net, 1 + next(&random) % MOST, &random, &sum);
        tell("%d %016lx\n", i, sum);
    }
    char more[BYTES];
    must(recv(pair[1], more, sizeof more, MSG_DONTWAIT) == -1 && errno == EAGAIN, "a message too many");
    must(recv(net[1], more, sizeof more, MSG_DONTWAIT) == -1 && errno == EAGAIN, "a message too many");
    return 0;
}
