/* Writes the numbers 0 … COUNT-1, nine bytes each, to standard output: a loss or repetition shows where it happened.
 * counter COUNT [write|writev|send|sendmsg]; FAULT=lose:N or FAULT=repeat:N spoils line N (for the oracle's own test). */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

static ssize_t put(const char *how, const char *line, size_t len)
{
    struct iovec parts[2] = {{(void *)line, len / 2}, {(void *)(line + len / 2), len - len / 2}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    if (!strcmp(how, "writev"))
        return writev(1, parts, 2);
    if (!strcmp(how, "send"))
        return send(1, line, len, 0);
    if (!strcmp(how, "sendmsg"))
        return sendmsg(1, &message, 0);
    return write(1, line, len);
}

int main(int argc, char **argv)
{
    long count = argc > 1 ? atol(argv[1]) : 1000;
    const char *how = argc > 2 ? argv[2] : "write";
    const char *fault = getenv("FAULT");
    long lose = fault && !strncmp(fault, "lose:", 5) ? atol(fault + 5) : -1;
    long repeat = fault && !strncmp(fault, "repeat:", 7) ? atol(fault + 7) : -1;
    for (long i = 0; i < count; i++) {
        char line[16];
        size_t len = snprintf(line, sizeof line, "%08ld\n", i), done = 0;
        if (i == lose)
            len--;
        for (int times = i == repeat ? 2 : 1; times; times--, done = 0)
            while (done < len) {
                ssize_t n = put(how, line + done, len - done);
                if (n < 0)
                    return 2;
                done += n;
            }
    }
    return 0;
}
