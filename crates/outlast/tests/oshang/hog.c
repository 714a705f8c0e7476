/* Computes on one processor for so long, and ends by itself in any case.
 * hog PROCESSOR MS fifo|first|idle|usual: before all others; before most; after all others, with a system call now and then; as everybody does */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static long now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int main(int argc, char **argv)
{
    struct sched_param none = {0}, some = {1};
    cpu_set_t only;
    int failed = 0;
    if (argc != 4)
        return 2;
    CPU_ZERO(&only);
    CPU_SET(atoi(argv[1]), &only);
    if (strcmp(argv[3], "idle"))
        alarm(8);
    if (sched_setaffinity(0, sizeof only, &only))
        failed = 1;
    if (!strcmp(argv[3], "fifo"))
        failed |= sched_setscheduler(0, SCHED_FIFO, &some);
    else if (!strcmp(argv[3], "idle"))
        failed |= sched_setscheduler(0, SCHED_IDLE, &none);
    else if (!strcmp(argv[3], "first"))
        failed |= setpriority(PRIO_PROCESS, 0, -20);
    if (failed) {
        perror("hog");
        return 1;
    }
    int calls = !strcmp(argv[3], "idle");
    for (long end = now() + atol(argv[2]); now() < end;)
        if (calls)
            getppid();
    return 0;
}
