/* Answers each line with its number and the line, but first does what it says.
 * answers FILE
 * hang: computes as long as the first byte of FILE, which it maps, is not 0; thread: has a thread do so; compute MS: computes so long */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static volatile char *word;

static void *hang(void *unused)
{
    while (*word)
        ;
    return unused;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

int main(int argc, char **argv)
{
    int fd = open(argv[argc - 1], O_RDWR);
    word = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    if (fd < 0 || word == MAP_FAILED)
        return 1;
    close(fd);
    char line[100];
    for (int n = 1; fgets(line, sizeof line, stdin); n++) {
        if (!strcmp(line, "hang\n"))
            hang(NULL);
        if (!strcmp(line, "thread\n")) {
            pthread_t thread;
            if (pthread_create(&thread, NULL, hang, NULL))
                return 1;
            pthread_detach(thread);
        }
        if (!strncmp(line, "compute ", 8))
            for (double end = now() + atoi(line + 8); now() < end;)
                ;
        printf("%d %s", n, line);
        fflush(stdout);
    }
    return 3;
}
