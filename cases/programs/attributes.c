/* Threads with attributes of their own: attributes ROUNDS. Processors, niceness, policy, timer slack, each thread its own. */
#define _GNU_SOURCE
#include "tell.h"
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

enum { THREADS = 3 };
static int rounds;
static pthread_barrier_t meeting;

static void *work(void *arg)
{
    int id = (int)(uintptr_t)arg;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(id % 2, &set);
    must(!sched_setaffinity(0, sizeof set, &set), "affinity");
    must(!setpriority(PRIO_PROCESS, syscall(SYS_gettid), 3 + id), "priority");
    must(!prctl(PR_SET_TIMERSLACK, 1000 * (id + 1)), "slack");
    if (id == 2)
        must(!pthread_setschedparam(pthread_self(), SCHED_BATCH, &(struct sched_param){0}), "policy");
    for (int round = 0; round < rounds; round++) {
        for (int turn = 0; turn < THREADS; turn++) {
            pthread_barrier_wait(&meeting);
            if (turn != id)
                continue;
            cpu_set_t now;
            must(sched_getaffinity(0, sizeof now, &now) == 0, "get affinity");
            int policy;
            struct sched_param param;
            must(!pthread_getschedparam(pthread_self(), &policy, &param), "get policy");
            tell("%d %d: cpus %d of %d, on %d, nice %d, slack %d, policy %d\n", round, id, CPU_ISSET(0, &now) + 2 * CPU_ISSET(1, &now), CPU_COUNT(&now),
                 sched_getcpu() == id % 2, getpriority(PRIO_PROCESS, 0), prctl(PR_GET_TIMERSLACK), policy);
        }
    }
    return arg;
}

int main(int argc, char **argv)
{
    rounds = argc > 1 ? atoi(argv[1]) : 50;
    pthread_t all[THREADS];
    must(!pthread_barrier_init(&meeting, 0, THREADS), "barrier");
    for (int i = 0; i < THREADS; i++)
        must(!pthread_create(&all[i], 0, work, (void *)(uintptr_t)i), "create");
    for (int i = 0; i < THREADS; i++)
        must(!pthread_join(all[i], 0), "join");
    return 0;
}
