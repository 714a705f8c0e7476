/* Gives the GS register a base of its own, by arch_prctl or, where the kernel says that it may, by wrgsbase, and finds there what it
 * has put there, in signal handlers and a second thread, too. */
#define _GNU_SOURCE
#include "tell.h"
#include <asm/prctl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/syscall.h>

enum { HWCAP2_FSGSBASE = 2 };

static uint64_t areas[2][8];

static void set_base(uint64_t *area)
{
    if (getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE)
        __asm__ volatile("wrgsbase %0" : : "r"(area));
    else
        must(!syscall(SYS_arch_prctl, ARCH_SET_GS, area), "ARCH_SET_GS");
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
    found();
}

static void *second(void *unused)
{
    areas[1][0] = 7;
    set_base(areas[1]);
    for (int i = 0; i < 100; i++)
        must(found() == 7, "the second thread's base");
    return unused;
}

int main(void)
{
    pthread_t thread;
    signal(SIGUSR1, handler);
    areas[0][0] = 42;
    set_base(areas[0]);
    must(!pthread_create(&thread, NULL, second, NULL), "pthread_create");
    for (int i = 0; i < 200; i++) {
        uint64_t base = 0, value = found();
        raise(SIGUSR1);
        must(!syscall(SYS_arch_prctl, ARCH_GET_GS, &base), "ARCH_GET_GS");
        tell("%d %lu %lu %d\n", i, value, areas[0][1], base == (uint64_t)areas[0]);
    }
    must(!pthread_join(thread, NULL), "pthread_join");
    tell("%lu\n", areas[1][1]);
    return 0;
}
