/* Mutexes of every kind, whose words hold thread ids that the kernel compares: mutexes ROUNDS THREADS.
 * With priority inheritance, robust, both, and a condition variable with each; owners that end with a mutex in their hands. */
#define _GNU_SOURCE
#include "tell.h"
#include <pthread.h>

enum { KINDS = 3, MOST = 16, STEPS = 400 };

static const char *const names[KINDS] = {"inheriting", "robust", "both"};
static pthread_mutex_t mutexes[KINDS];
static pthread_cond_t turned[KINDS];
static pthread_barrier_t meeting;
static int turns[KINDS], threads, rounds;
static long counts[KINDS], inherited[KINDS];
static uint64_t sums[KINDS];

static void make(int kind)
{
    pthread_mutexattr_t how;
    must(!pthread_mutexattr_init(&how), "attributes");
    if (kind != 1)
        must(!pthread_mutexattr_setprotocol(&how, PTHREAD_PRIO_INHERIT), "inherit");
    if (kind != 0)
        must(!pthread_mutexattr_setrobust(&how, PTHREAD_MUTEX_ROBUST), "robust");
    must(!pthread_mutex_init(&mutexes[kind], &how), "mutex");
    must(!pthread_cond_init(&turned[kind], 0), "condition");
}

static void take(int kind)
{
    int r = pthread_mutex_lock(&mutexes[kind]);
    if (r == EOWNERDEAD) {
        inherited[kind]++;
        r = pthread_mutex_consistent(&mutexes[kind]);
    }
    errno = r;
    must(!r, names[kind]);
}

static void give(int kind)
{
    must(!(errno = pthread_mutex_unlock(&mutexes[kind])), names[kind]);
}

/* Ends with the mutex. */
static void *heir(void *arg)
{
    take((int)(uintptr_t)arg);
    return arg;
}

static void *work(void *arg)
{
    int id = (int)(uintptr_t)arg;
    uint64_t state = id + 5;
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < STEPS; i++) {
            int kind = next(&state) % KINDS;
            take(kind);
            long before = counts[kind];
            for (volatile int n = next(&state) % 200; n--;)
                ;
            must(counts[kind] == before, "alone with the mutex");
            counts[kind] = before + 1;
            give(kind);
        }
        for (int kind = 0; kind < KINDS; kind++) {
            take(kind);
            while (turns[kind] != id) {
                int r = pthread_cond_wait(&turned[kind], &mutexes[kind]);
                if (r == EOWNERDEAD) {
                    inherited[kind]++;
                    r = pthread_mutex_consistent(&mutexes[kind]);
                }
                must(!(errno = r), "wait");
            }
            sums[kind] = mix(sums[kind], &id, sizeof id);
            tell("round %d, %s: %d, %016lx\n", round, names[kind], id, (unsigned long)sums[kind]);
            if (kind && id == round % threads) {
                /* Somebody else dies with it, while all others wait for it. */
                pthread_t other;
                give(kind);
                must(!pthread_create(&other, 0, heir, (void *)(uintptr_t)kind), "create");
                must(!pthread_join(other, 0), "join");
                take(kind);
            }
            turns[kind] = (id + 1) % threads;
            must(!pthread_cond_broadcast(&turned[kind]), "broadcast");
            give(kind);
            pthread_barrier_wait(&meeting);
        }
    }
    return arg;
}

int main(int argc, char **argv)
{
    rounds = argc > 1 ? atoi(argv[1]) : 20;
    threads = argc > 2 ? atoi(argv[2]) : 4;
    must(threads > 0 && threads <= MOST, "number of threads");
    pthread_t all[MOST];
    for (int kind = 0; kind < KINDS; kind++)
        make(kind);
    must(!pthread_barrier_init(&meeting, 0, threads), "barrier");
    for (int i = 0; i < threads; i++)
        must(!pthread_create(&all[i], 0, work, (void *)(uintptr_t)i), "create");
    for (int i = 0; i < threads; i++)
        must(!pthread_join(all[i], 0), "join");
    long count = 0;
    for (int kind = 0; kind < KINDS; kind++) {
        count += counts[kind];
        tell("%s: inherited %ld\n", names[kind], inherited[kind]);
    }
    tell("%ld steps\n", count);
    return 0;
}
