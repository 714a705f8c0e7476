/* Many threads that mostly sleep, each with something of its own to keep, beside one that prints: sleepers THREADS NAPS LINES.
 * What a thread keeps lies in the page that the kernel writes to, too, whenever the thread comes back from another processor. */
#define _GNU_SOURCE
#include "tell.h"
#include <pthread.h>
#include <time.h>

enum { MOST = 1000 };

static __thread volatile long naps_taken;
static __thread uint64_t dreams;
static uint64_t results[MOST];
static int naps;

static void *nap(void *number)
{
    uint64_t seed = 88172645463325252 + (uintptr_t)number;
    for (long n = 0; n < naps; n++) {
        nanosleep(&(struct timespec){.tv_nsec = 5000000 + next(&seed) % 12000000}, NULL);
        must(naps_taken == n, "what a thread keeps");
        naps_taken = n + 1;
        dreams = mix(dreams, &seed, sizeof seed);
    }
    results[(uintptr_t)number] = dreams;
    return NULL;
}

int main(int argc, char **argv)
{
    must(argc == 4 && atoi(argv[1]) <= MOST, "sleepers THREADS NAPS LINES");
    int threads = atoi(argv[1]), lines = atoi(argv[3]);
    pthread_t all[MOST];
    naps = atoi(argv[2]);
    for (uintptr_t i = 0; i < (uintptr_t)threads; i++)
        must(!pthread_create(&all[i], NULL, nap, (void *)i), "pthread_create");
    for (int line = 0; line < lines; line++) {
        tell("%d\n", line);
        if (line % 3 == 0)
            nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
    }
    for (int i = 0; i < threads; i++) {
        must(!pthread_join(all[i], NULL), "pthread_join");
        tell("%d %016lx\n", i, results[i]);
    }
    return 0;
}
