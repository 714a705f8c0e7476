/* Dereferences NULL on purpose and goes on by siglongjmp from its own SIGSEGV handler: its faults are its own affair. */
#define _GNU_SOURCE
#include "tell.h"
#include <setjmp.h>
#include <signal.h>

static sigjmp_buf back;
static volatile long faults;
static void *volatile where;

static void handler(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)context;
    faults++;
    where = info->si_addr;
    siglongjmp(back, 1);
}

int main(int argc, char **argv)
{
    volatile int rounds = argc > 1 ? atoi(argv[1]) : 1000;
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    must(!sigaction(SIGSEGV, &action, NULL), "sigaction");
    for (volatile int i = 0; i < rounds; i++) {
        if (!sigsetjmp(back, 1)) {
            *(volatile char *)(uintptr_t)(i % 4000) = 1;
            must(0, "a store near address 0 did not fault");
        }
        tell("%d faults, the last at %p\n", (int)faults, where);
    }
    return 0;
}
