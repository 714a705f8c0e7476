/* Threads that each give the GS register a base of their own, by arch_prctl or, where the kernel says that they may, by wrgsbase, and
 * find there what they have put there: in their own code, in handlers of signals that come at any moment, in children of both kinds,
 * and after they have changed it. */
#define _GNU_SOURCE
#include "tell.h"
#include <asm/prctl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

enum { HWCAP2_FSGSBASE = 2, WORKERS = 3 };

static uint64_t areas[WORKERS + 2][8];
static __thread uint64_t expected;
static atomic_int over;
static int line[2];

static void set_base(uint64_t *area, uint64_t value)
{
    area[0] = value;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE)
        __asm__ volatile("wrgsbase %0" : : "r"(area));
    else
        must(!syscall(SYS_arch_prctl, ARCH_SET_GS, area), "ARCH_SET_GS");
    expected = value;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static uint64_t found(void)
{
    uint64_t value;
    __asm__ volatile("mov %%gs:0, %0" : "=r"(value));
    __asm__ volatile("incq %%gs:8" : : : "memory");
    return value;
}

static void handler(int signal)
{
    (void)signal;
    must(!expected || found() == expected, "the base in a handler");
}

static void *work(void *place)
{
    set_base(areas[(long)place], (long)place);
    double sum = 0;
    while (!over) {
        for (int i = 0; i < 2000; i++)
            sum = sum * 0.5 + i;
        syscall(SYS_getppid);
        must(found() == expected, "a thread's base");
        clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){0, 100000}, NULL);
        must(found() == expected, "a thread's base after a wait");
    }
    return sum > 0 ? NULL : place;
}

/* What each child has found, through a pipe: one that was made before a recovery is nobody's to wait for. */
static int children(void)
{
    char said[2];
    for (int i = 0; i < 2; i++) {
        pid_t child = i ? vfork() : fork();
        if (!child)
            _exit(write(line[1], found() == expected ? "+" : "-", 1) != 1);
        must(child > 0, "a child");
        while (read(line[0], &said[i], 1) != 1)
            must(errno == EINTR, "read");
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    return said[0] == '+' && said[1] == '+';
}

int main(int argc, char **argv)
{
    pthread_t workers[WORKERS];
    int rounds = argc > 1 ? atoi(argv[1]) : 200;
    must(!sigaction(SIGALRM, &(struct sigaction){.sa_handler = handler, .sa_flags = SA_RESTART}, NULL), "sigaction");
    must(!sigaction(SIGUSR1, &(struct sigaction){.sa_handler = handler}, NULL), "sigaction");
    for (long i = 0; i < WORKERS; i++)
        must(!pthread_create(&workers[i], NULL, work, (void *)(i + 1)), "pthread_create");
    must(!pipe(line), "pipe");
    struct itimerval often = {{0, 3000}, {0, 3000}};
    must(!setitimer(ITIMER_REAL, &often, NULL), "setitimer");
    for (int i = 0; i < rounds; i++) {
        uint64_t base = 0, *area = areas[i / 7 % 2 ? WORKERS + 1 : 0];
        if (i % 7 == 0)
            set_base(area, 100 + i);
        raise(SIGUSR1);
        must(!syscall(SYS_arch_prctl, ARCH_GET_GS, &base), "ARCH_GET_GS");
        tell("%d %lu %d %d\n", i, found(), base == (uint64_t)area, i % 10 || children());
    }
    over = 1;
    for (int i = 0; i < WORKERS; i++) {
        void *wrong;
        must(!pthread_join(workers[i], &wrong) && !wrong, "pthread_join");
    }
    return 0;
}
