// A client of a web server that listens on a socket of a folder: sessions of small pages, and a huge file at the end of each.
// sessions SOCKET PIDFILE SEED SESSIONS SMALL: prints a sum over all that each session got, and ends the server in PIDFILE, unless
// that is "-": it ends when its connections are closed (SIGINT).
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { PAGES = 100, BUFFER = 1 << 18 };

static uint64_t state;
static char buffer[BUFFER + 1];

static unsigned random_below(unsigned limit) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (state >> 11) % limit;
}

static int reach(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    for (int tries = 0; tries < 400; tries++) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
            return fd;
        close(fd);
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    }
    fprintf(stderr, "sessions: nobody listens on %s\n", path);
    exit(9);
}

static void broken(const char *what) {
    fprintf(stderr, "sessions: %s\n", what);
    exit(8);
}

// Header and body of one reply. The header differs by the moment: only its first line is summed.
static uint64_t get(int fd, const char *name, uint64_t sum) {
    char request[128];
    int len = snprintf(request, sizeof request, "GET /%s HTTP/1.1\r\nHost: here\r\n\r\n", name);
    if (send(fd, request, len, MSG_NOSIGNAL) != len)
        broken("a request cannot be sent");
    size_t got = 0;
    char *body = NULL;
    while (!body) {
        ssize_t n = got < BUFFER ? recv(fd, buffer + got, BUFFER - got, 0) : 0;
        if (n <= 0)
            broken("a reply ends in its header");
        got += n;
        buffer[got] = 0;
        body = strstr(buffer, "\r\n\r\n");
    }
    body += 4;
    char *length = strstr(buffer, "Content-Length: ");
    if (!length || length > body)
        broken("a reply has no length");
    uint64_t left = strtoull(length + 16, NULL, 10);
    for (char *at = buffer; *at != '\r'; at++)
        sum = (sum ^ (unsigned char)*at) * 0x100000001b3;
    char *from = body;
    size_t have = got - (body - buffer);
    for (;;) {
        if (have > left)
            broken("there is more than a reply");
        left -= have;
        for (; have >= 8; have -= 8, from += 8) {
            uint64_t word;
            memcpy(&word, from, 8);
            sum = (sum ^ word) * 0x100000001b3;
        }
        // What is left of a word comes again with the next part, so that sums do not depend on how a reply is cut.
        memmove(buffer, from, have);
        if (!left)
            break;
        ssize_t n = recv(fd, buffer + have, BUFFER - have, 0);
        if (n <= 0)
            broken("a reply is cut short");
        left += have, have += n, from = buffer;
    }
    for (size_t i = 0; i < have; i++)
        sum = (sum ^ (unsigned char)buffer[i]) * 0x100000001b3;
    return sum;
}

int main(int argc, char **argv) {
    if (argc != 6)
        return 2;
    state = strtoull(argv[3], NULL, 10) * 0x9e3779b97f4a7c15 + 1;
    long sessions = atol(argv[4]), small = atol(argv[5]);
    for (long session = 0; session < sessions; session++) {
        int fd = reach(argv[1]);
        uint64_t sum = 0xcbf29ce484222325;
        for (long i = 0; i < small; i++) {
            char name[32];
            snprintf(name, sizeof name, "p%u.html", random_below(PAGES));
            sum = get(fd, name, sum);
        }
        sum = get(fd, "huge", sum);
        close(fd);
        printf("%016llx\n", (unsigned long long)sum);
    }
    fflush(stdout);
    FILE *file = strcmp(argv[2], "-") ? fopen(argv[2], "r") : NULL;
    int pid;
    if (file && fscanf(file, "%d", &pid) == 1)
        return kill(pid, SIGINT) ? 7 : 0;
    return strcmp(argv[2], "-") ? 6 : 0;
}
