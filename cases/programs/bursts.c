/* Prints in bursts: bursts ROUNDS. Each round prints some small lines in quick succession to the standard output, and sends numbered
 * messages through a pair of sockets and a pipe of its own, which it then reads and checks; some rounds compute for a while, are
 * interrupted by a signal whose handler prints as well, wait, or have a child. The output depends on nothing but ROUNDS. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t state = 88172645463325252u;
static volatile sig_atomic_t handled;

static unsigned random_below(unsigned n)
{
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state % n;
}

static void fail(const char *what)
{
    dprintf(1, "%s: %s\n", what, strerror(errno));
    exit(1);
}

static void put(int fd, const char *text, size_t len)
{
    if (write(fd, text, len) != (ssize_t)len)
        fail("write");
}

static void handler(int sig)
{
    (void)sig;
    handled++;
    put(1, "handled\n", 8);
}

static void take(int fd, const char *expected, size_t len)
{
    char text[4096];
    size_t done = 0;
    while (done < len) {
        ssize_t n = read(fd, text + done, len - done);
        if (n <= 0)
            fail("read");
        done += n;
    }
    if (memcmp(text, expected, len) != 0) {
        dprintf(1, "came otherwise: %.*s instead of %.*s\n", (int)len, text, (int)len, expected);
        exit(1);
    }
}

/* Sends what fits in small messages to several descriptors by turns, and has it come out of each in its order. */
static void talk(int round, int count, int (*ways)[2], int most)
{
    static char all[4][4096];
    size_t len[4] = {0};
    for (int i = 0; i < count; i++) {
        int way = (i / 3) % most;
        char text[32];
        int n = snprintf(text, sizeof text, "%d.%d;", round, i);
        if (way == 2 ? send(ways[way][1], text, n, MSG_NOSIGNAL) != n : write(ways[way][1], text, n) != n)
            fail("send");
        memcpy(all[way] + len[way], text, n);
        len[way] += n;
    }
    for (int way = 0; way < most; way++)
        take(ways[way][0], all[way], len[way]);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 100, ways[3][2];
    if (pipe(ways[0]) || socketpair(AF_UNIX, SOCK_STREAM, 0, ways[1]) || socketpair(AF_UNIX, SOCK_STREAM, 0, ways[2]))
        fail("pipe");
    /* The last one's end that sends does not wait. */
    fcntl(ways[2][1], F_SETFL, O_NONBLOCK);
    signal(SIGUSR1, handler);
    for (int round = 0; round < rounds; round++) {
        int lines = random_below(120);
        for (int i = 0; i < lines; i++) {
            char text[64];
            put(1, text, snprintf(text, sizeof text, "%d %d\n", round, i));
            if (i == 60 && round % 4 == 1)
                raise(SIGUSR1);
        }
        switch (random_below(6)) {
        case 0:
            for (volatile int i = 0; i < 2000000; i++)
                ;
            break;
        case 1:
            nanosleep(&(struct timespec){0, 500000}, NULL);
            break;
        case 2:
            put(1, "waits\n", 6);
            poll(NULL, 0, 1);
            break;
        case 4: {
            /* Nobody's child any more if its parent dies meanwhile. */
            pid_t pid = fork();
            if (pid == 0)
                _exit(0);
            if (pid < 0 || (waitpid(pid, NULL, 0) != pid && errno != ECHILD))
                fail("fork");
            break;
        }
        case 3:
            put(1, "", 0);
            break;
        }
        talk(round, 30 + random_below(60), ways, 3);
    }
    char text[64];
    put(1, text, snprintf(text, sizeof text, "done, %d handled\n", (int)handled));
    return 0;
}
