/* Scheduling that a clone does not inherit (SCHED_RESET_ON_FORK): reset ROUNDS. Changes it every now and then and tells each time what
 * it is. What the program may not set, it tells of as well. */
#define _GNU_SOURCE
#include "tell.h"
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>

struct attr {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

enum { KINDS = 3 };
static const struct { int policy, nice, priority; } KIND[KINDS] = { { SCHED_BATCH, 0, 0 }, { SCHED_OTHER, -3, 0 }, { SCHED_RR, 0, 2 } };

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 100;
    for (int round = 0; round < rounds; round++) {
        if (round % 20 == 0) {
            int kind = round / 20 % KINDS;
            struct attr attr = { sizeof attr, KIND[kind].policy, 1, KIND[kind].nice, KIND[kind].priority, 0, 0, 0 };
            struct sched_param parameter = { KIND[kind].priority };
            if (kind == 1)
                tell("set: %d\n", syscall(SYS_sched_setattr, 0, &attr, 0) ? errno : 0);
            else
                tell("set: %d\n", sched_setscheduler(0, KIND[kind].policy | SCHED_RESET_ON_FORK, &parameter) ? errno : 0);
        }
        struct attr now = { 0 };
        must(!syscall(SYS_sched_getattr, 0, &now, sizeof now, 0), "sched_getattr");
        /* A policy that makes no use of a niceness leaves it as it is. */
        tell("%d: policy %x flags %llx nice %d %d priority %u\n", round, sched_getscheduler(0), (unsigned long long)now.flags, now.nice,
             getpriority(PRIO_PROCESS, 0), now.priority);
    }
    return 0;
}
