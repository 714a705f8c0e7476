/* Locks memory in every way; prints what is locked after every step.
 * locked STEPS [all] */
#define _GNU_SOURCE
#include "tell.h"
#include <sys/mman.h>

enum { PAGE = 4096, PLACES = 6, PARTS = 8 };

static unsigned char *place[PLACES];

/* Whether the mapping that begins at an address is locked, and whether only what is touched. */
static const char *state(unsigned char *at)
{
    char line[512];
    unsigned long start = 0, from, to;
    FILE *maps = fopen("/proc/self/smaps", "r");
    must(maps != NULL, "open smaps");
    const char *found = "unmapped";
    while (fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            start = from <= (unsigned long)at && (unsigned long)at < to;
        else if (start && !strncmp(line, "VmFlags:", 8))
            found = !strstr(line, " lo") ? "free" : strstr(line, " lf") ? "on-fault" : "locked";
    }
    fclose(maps);
    return found;
}

static void show(long step, unsigned char *parts)
{
    char text[512];
    int n = 0;
    for (int i = 0; i < PLACES; i++)
        n += sprintf(text + n, " %s", place[i] ? state(place[i]) : "-");
    for (int page = 0; page < PARTS; page++)
        n += sprintf(text + n, " %s", state(parts + page * PAGE));
    tell("%ld%s\n", step, text);
}

int main(int argc, char **argv)
{
    long steps = argc > 1 ? atol(argv[1]) : 200;
    int all = argc > 2;
    uint64_t random = 5;
    /* One of which parts are locked. */
    unsigned char *parts = mmap(NULL, (PARTS + 2) * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(parts != MAP_FAILED && !mprotect(parts, PAGE, PROT_NONE) && !mprotect(parts + (PARTS + 1) * PAGE, PAGE, PROT_NONE), "mmap");
    parts += PAGE;
    for (long step = 0; step < steps; step++) {
        int i = next(&random) % PLACES;
        switch (next(&random) % (all ? 8 : 6)) {
        case 0:
        case 1:
            if (place[i])
                munmap(place[i] - PAGE, 6 * PAGE);
            place[i] = mmap(NULL, 6 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            must(place[i] != MAP_FAILED, "mmap");
            /* Neighbours are of another kind, so that the kernel joins nothing. */
            must(!mprotect(place[i], PAGE, PROT_NONE) && !mprotect(place[i] + 5 * PAGE, PAGE, PROT_NONE), "mprotect");
            place[i] += PAGE;
            memset(place[i], step, 2 * PAGE);
            break;
        case 2:
            if (place[i])
                must(!mlock(place[i], 4 * PAGE), "mlock");
            break;
        case 3:
            if (place[i])
                must(!mlock2(place[i], 4 * PAGE, MLOCK_ONFAULT), "mlock2");
            break;
        case 4:
            if (place[i])
                must(!munlock(place[i], 4 * PAGE), "munlock");
            break;
        case 5:
            if (place[i])
                place[i][next(&random) % (4 * PAGE)]++;
            break;
        case 6:
            must(!mlockall((int[]){ MCL_CURRENT, MCL_FUTURE, MCL_CURRENT | MCL_FUTURE,
                                    MCL_FUTURE | MCL_ONFAULT, MCL_CURRENT | MCL_ONFAULT }[next(&random) % 5]), "mlockall");
            break;
        case 7:
            must(!munlockall(), "munlockall");
            break;
        }
        int first = next(&random) % PARTS, count = 1 + next(&random) % (PARTS - first);
        unsigned char *part = parts + first * PAGE;
        must(next(&random) % 2 ? !munlock(part, count * PAGE) : !mlock2(part, count * PAGE, next(&random) % 2), "a part");
        parts[next(&random) % (PARTS * PAGE)]++;
        show(step, parts);
    }
    return 0;
}
