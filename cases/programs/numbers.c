/* Asks by number for itself and for its threads: numbers ROUNDS THREADS. All must be found, however often it died. */
#define _GNU_SOURCE
#include "tell.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>

enum { MOST = 8, WHO_PROCESS = 1 };

static pthread_barrier_t begun, done;
static struct one {
    pthread_t thread;
    pid_t tid;
} all[MOST + 1];

static void *stand(void *one)
{
    ((struct one *)one)->tid = gettid();
    pthread_barrier_wait(&begun);
    pthread_barrier_wait(&done);
    return NULL;
}

static void ask(const struct one *one)
{
    cpu_set_t set;
    pthread_attr_t attributes;
    clockid_t clock;
    struct timespec time;
    struct sched_param parameter;
    must(!sched_getaffinity(one->tid, sizeof set, &set) && CPU_COUNT(&set) > 0, "sched_getaffinity");
    must(sched_getscheduler(one->tid) == SCHED_OTHER, "sched_getscheduler");
    must(!sched_getparam(one->tid, &parameter), "sched_getparam");
    must(syscall(SYS_ioprio_get, WHO_PROCESS, one->tid) >= 0, "ioprio_get");
    // A nice value may be negative.
    errno = 0;
    getpriority(PRIO_PROCESS, one->tid);
    must(!errno, "getpriority");
    must(!tgkill(getpid(), one->tid, 0) && !(errno = pthread_kill(one->thread, 0)), "tgkill");
    must(!(errno = pthread_getattr_np(one->thread, &attributes)), "pthread_getattr_np");
    pthread_attr_destroy(&attributes);
    must(!(errno = pthread_getcpuclockid(one->thread, &clock)), "pthread_getcpuclockid");
    must(!clock_gettime(clock, &time), "a thread's clock");
}

static void ask_for_process(void)
{
    pid_t pid = getpid();
    clockid_t clock;
    struct timespec time;
    struct rlimit limit;
    long there = pid, here = 0;
    struct iovec to = {&here, sizeof here}, from = {&there, sizeof there};
    must(!clock_getcpuclockid(pid, &clock) && !clock_gettime(clock, &time), "the process's clock");
    must(!prlimit(pid, RLIMIT_NOFILE, NULL, &limit), "prlimit");
    must(process_vm_readv(pid, &to, 1, &from, 1, 0) == sizeof here && here == there, "process_vm_readv");
    must(getpgid(pid) == getpgrp() && getsid(pid) == getsid(0), "group and session");
    must(!kill(pid, 0) && !kill(-getpgrp(), 0), "kill");
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 100, threads = argc > 2 ? atoi(argv[2]) : MOST;
    all[threads] = (struct one){pthread_self(), gettid()};
    for (int round = 0; round < rounds; round++) {
        /* New ones now and then: some are older than the last death, some younger. */
        if (round % 20 == 0) {
            must(!pthread_barrier_init(&begun, NULL, threads + 1) && !pthread_barrier_init(&done, NULL, threads + 1), "barriers");
            for (int i = 0; i < threads; i++)
                must(!pthread_create(&all[i].thread, NULL, stand, &all[i]), "pthread_create");
            pthread_barrier_wait(&begun);
        }
        ask_for_process();
        for (int i = 0; i <= threads; i++)
            ask(&all[i]);
        tell("%d all found\n", round);
        if (round % 20 == 19) {
            int nice = getpriority(PRIO_PROCESS, all[0].tid);
            must(!setpriority(PRIO_PROCESS, all[0].tid, nice), "setpriority");
            pthread_barrier_wait(&done);
            for (int i = 0; i < threads; i++)
                must(!pthread_join(all[i].thread, NULL), "pthread_join");
        }
    }
    return 0;
}
