/* Threads that compute side by side and take turns at speaking: threads ROUNDS THREADS.
 * A mutex, a condition variable, a barrier, thread-local memory, threads that come and go; the same lines in every run. */
#define _GNU_SOURCE
#include "tell.h"
#include <pthread.h>
#include <sys/syscall.h>

enum { MOST = 64, STEPS = 3000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t meeting;
static int rounds, threads, turn;
static uint64_t sum;
static __thread uint64_t own;
static __thread long number;

static void *errand(void *arg)
{
    uint64_t state = (uintptr_t)arg + 1;
    for (int i = 0; i < STEPS; i++)
        own += next(&state) % 1000;
    return (void *)(uintptr_t)own;
}

static void meet(void)
{
    int r = pthread_barrier_wait(&meeting);
    must(r == 0 || r == PTHREAD_BARRIER_SERIAL_THREAD, "barrier");
}

static void *work(void *arg)
{
    int id = (int)(uintptr_t)arg;
    uint64_t state = id + 77;
    number = syscall(SYS_gettid);
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < STEPS; i++)
            own = own * 31 + next(&state) % 1000;
        must(!pthread_mutex_lock(&lock), "lock");
        sum += own;
        must(!pthread_mutex_unlock(&lock), "unlock");
        meet();
        must(syscall(SYS_gettid) == number, "another thread id");
        must(!pthread_mutex_lock(&lock), "lock");
        while (turn != id)
            must(!pthread_cond_wait(&turned, &lock), "wait");
        tell("%d of %d in round %d: %016lx\n", id, threads, round, (unsigned long)sum);
        turn = (turn + 1) % threads;
        must(!pthread_cond_broadcast(&turned), "broadcast");
        must(!pthread_mutex_unlock(&lock), "unlock");
        meet();
        if (id == round % threads) {
            pthread_t other;
            void *result;
            must(!pthread_create(&other, 0, errand, (void *)(uintptr_t)round), "create");
            must(!pthread_join(other, &result), "join");
            must(!pthread_mutex_lock(&lock), "lock");
            sum += (uintptr_t)result;
            must(!pthread_mutex_unlock(&lock), "unlock");
        }
        meet();
    }
    return (void *)(uintptr_t)own;
}

int main(int argc, char **argv)
{
    rounds = argc > 1 ? atoi(argv[1]) : 20;
    threads = argc > 2 ? atoi(argv[2]) : 8;
    must(threads > 0 && threads <= MOST, "number of threads");
    must(!pthread_barrier_init(&meeting, 0, threads), "barrier");
    pthread_t all[MOST];
    for (int i = 0; i < threads; i++)
        must(!pthread_create(&all[i], 0, work, (void *)(uintptr_t)i), "create");
    uint64_t end = sum * 0;
    for (int i = 0; i < threads; i++) {
        void *result;
        must(!pthread_join(all[i], &result), "join");
        end ^= (uintptr_t)result;
    }
    tell("sum %016lx, end %016lx\n", (unsigned long)sum, (unsigned long)end);
    return 0;
}
