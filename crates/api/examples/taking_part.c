/* A program that takes part: it computes for long, keeps a cache that no commit needs, and wants to know of recoveries.
 *
 *     cc -I.. -o taking_part taking_part.c
 *     outlast run --name primes -- ./taking_part 9000000
 *     outlast commit primes
 */
#include "outlast.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* One byte a number: known to be composite. Cheap to make again, not worth keeping. */
static unsigned char *sieve;
static size_t size;
static volatile sig_atomic_t sieve_is_filled, commits, recoveries;

/* May be called at any instruction: does only what a handler of a signal may. */
static void shrink(void *argument)
{
    (void)argument;
    sieve_is_filled = 0;
    madvise(sieve, size, MADV_DONTNEED);
    commits++;
}

static void recovered(void *argument, int how)
{
    (void)argument, (void)how;
    recoveries++;
}

static void fill(void)
{
    sieve_is_filled = 1;
    for (size_t i = 2; i * i < size; i++)
        if (!sieve[i])
            for (size_t j = i * i; j < size; j += i)
                sieve[j] = 1;
}

int main(int argc, char **argv)
{
    size = argc > 1 ? strtoul(argv[1], NULL, 10) : 100000;
    sieve = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (size < 2 || sieve == MAP_FAILED) {
        fprintf(stderr, "usage: taking_part NUMBER\n");
        return 2;
    }
    if (!outlast_before_commit(shrink, NULL) || !outlast_after_recovery(recovered, NULL))
        printf("not protected, and just as right\n");
    for (int round = 1; round <= 20; round++) {
        size_t count;
        do {
            if (!sieve_is_filled)
                fill();
            count = 0;
            for (size_t i = 2; i < size; i++)
                count += !sieve[i];
        } while (!sieve_is_filled); /* a commit came in between, and emptied the sieve */
        printf("round %d: %zu primes\n", round, count);
        outlast_commit();
    }
    struct outlast_status status;
    if (outlast_status(&status)) {
        fprintf(stderr, "%llu commits, %d after a call of shrink; %llu recoveries, %d seen\n", status.commits, (int)commits,
                status.recoveries, (int)recoveries);
        for (int bit = 0; outlast_degradation(bit); bit++)
            if (status.degradations >> bit & 1)
                fprintf(stderr, "not preserved: %s\n", outlast_degradation(bit));
    }
    return 0;
}
