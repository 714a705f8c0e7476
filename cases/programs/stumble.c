/* Fails with a fatal signal now and then, but not again when it is rolled back: the cause is the time, which a rollback
 * does not set back. stumble ROUNDS: prints a line a round, like a program that never failed. */
#define _GNU_SOURCE
#include "tell.h"
#include <signal.h>
#include <sys/mman.h>
#include <time.h>

static long micros(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void fail(int kind, char *file)
{
    volatile int zero = 0;
    volatile char *volatile nowhere = (char *)8;
    switch (kind) {
    case 0:
        *nowhere = 1;
        break;
    case 1:
        abort();
    case 2:
        file[4096]++; /* Behind the end of the mapped file: SIGBUS. */
        break;
    case 3:
        zero = 1 / zero;
        break;
    default:
        __builtin_trap(); /* SIGILL */
    }
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 40, harmless = getenv("HARMLESS") != NULL;
    int empty = memfd_create("empty", MFD_CLOEXEC);
    char *file = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE, empty, 0);
    must(empty >= 0 && file != MAP_FAILED && !ftruncate(empty, 4096), "map a file");
    for (int i = 0; i < rounds; i++) {
        long since = micros();
        tell("round %d\n", i); /* The commit that a rollback returns to. */
        long entered = micros();
        while (micros() - entered < 3000)
            ;
        /* True the first time, false when the same wait follows a rollback. */
        if (!harmless && micros() - since < 4500)
            fail(i % 5, file);
    }
    return 0;
}
