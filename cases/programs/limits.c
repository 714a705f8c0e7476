/* Sets limits to what it may have; prints them, and what they allow, after every step.
 * limits STEPS */
#define _GNU_SOURCE
#include "tell.h"
#include <sys/mman.h>
#include <sys/resource.h>

static const struct { int resource; rlim_t few, many; } limit[] = {
    { RLIMIT_AS, 400 << 20, 900 << 20 },    { RLIMIT_DATA, 300 << 20, 800 << 20 }, { RLIMIT_STACK, 2 << 20, 6 << 20 },
    { RLIMIT_FSIZE, 8 << 20, 9 << 20 },     { RLIMIT_NOFILE, 60, 900 },            { RLIMIT_MEMLOCK, 4096, 65536 },
};
enum { LIMITS = sizeof limit / sizeof *limit };

/* Whether so many MiB can be mapped. */
static const char *room(size_t mib)
{
    void *at = mmap(NULL, mib << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return "no";
    must(!munmap(at, mib << 20), "munmap");
    return "yes";
}

int main(int argc, char **argv)
{
    long steps = argc > 1 ? atol(argv[1]) : 100;
    uint64_t random = 9;
    for (long step = 0; step < steps; step++) {
        int i = next(&random) % LIMITS;
        struct rlimit now, before;
        must(!getrlimit(limit[i].resource, &now), "getrlimit");
        now.rlim_cur = next(&random) % 2 ? limit[i].few : limit[i].many;
        must(!prlimit(0, limit[i].resource, &now, &before), "prlimit");
        /* What it has from elsewhere is not told of. */
        int told = before.rlim_cur == limit[i].few || before.rlim_cur == limit[i].many;
        char text[256];
        int n = sprintf(text, "%d", told);
        for (int j = 0; j < LIMITS; j++) {
            must(!getrlimit(limit[j].resource, &now), "getrlimit");
            told = now.rlim_cur == limit[j].few || now.rlim_cur == limit[j].many;
            n += sprintf(text + n, " %ld", told ? (long)now.rlim_cur : -1);
        }
        tell("%ld %s %s %s %s\n", step, text, room(100), room(600), room(1000));
    }
    return 0;
}
