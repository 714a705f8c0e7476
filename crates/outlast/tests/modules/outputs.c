// Counts, as two threads that know nothing of each other: each number goes to a stream that others see and to the end of a file. The
// second one's stream is read slowly, so that it waits for room most of the time.
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct counter {
    int stream, file, pause, length;
};

static void all(int fd, const char *at, int length) {
    while (length > 0) {
        int n = write(fd, at, length);
        if (n <= 0) abort();
        at += n, length -= n;
    }
}

static void *count(void *argument) {
    struct counter *c = argument;
    char record[4096];
    for (int n = 0;; n++) {
        memset(record, '.', c->length);
        int digits = snprintf(record, sizeof record, "%d", n);
        record[digits] = ' ';
        record[c->length - 1] = '\n';
        all(c->stream, record, c->length);
        dprintf(c->file, "%d\n", n);
        if (c->pause) usleep(c->pause);
    }
}

// outputs FILE FILE: the streams are standard output and error.
int main(int argc, char **argv) {
    int flags = O_CREAT | O_WRONLY | O_APPEND;
    struct counter first = {1, open(argv[1], flags, 0600), 300, 16};
    struct counter second = {2, open(argv[2], flags, 0600), 0, 3000};
    pthread_t thread;
    if (argc > 2) pthread_create(&thread, NULL, count, &second);
    return (long)count(&first);
}
