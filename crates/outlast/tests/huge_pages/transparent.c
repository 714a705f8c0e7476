/* Writes memory all over, again and again, and tells what the kernel makes of it: huge pages at first, small ones once tracking has
 * taken them apart, and huge ones again. Ends then. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { SPAN = 2 << 20, SPANS = 4 };

static long huge_kib(unsigned char *memory)
{
    char line[512];
    unsigned long low, high;
    long sum = 0, kib;
    int inside = 0;
    FILE *maps = fopen("/proc/self/smaps", "r");
    if (!maps)
        exit(2);
    while (fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%lx-%lx ", &low, &high) == 2)
            inside = low < (unsigned long)memory + SPANS * SPAN && (unsigned long)memory < high;
        else if (inside && sscanf(line, "AnonHugePages: %ld kB", &kib) == 1)
            sum += kib;
    }
    fclose(maps);
    return sum;
}

int main(void)
{
    enum { ALL = SPANS * SPAN / 1024 };
    unsigned char *room = mmap(NULL, (SPANS + 1) * SPAN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED)
        return 2;
    unsigned char *memory = (unsigned char *)(((unsigned long)room + SPAN - 1) & ~(unsigned long)(SPAN - 1));
    if (madvise(memory, SPANS * SPAN, MADV_HUGEPAGE))
        return 4;
    int seen = 0;
    for (long pass = 0; seen < 3; pass++) {
        for (size_t at = 0; at < SPANS * SPAN; at += 4096)
            memory[at + pass % 4096]++;
        if (pass % 1000)
            continue;
        long kib = huge_kib(memory);
        if (pass == 0 && kib == 0)
            return 4;
        /* Each in its turn. */
        if (seen == 0 && kib == ALL)
            seen = 1;
        else if (seen == 1 && kib <= ALL / 4)
            seen = 2;
        else if (seen == 2 && kib >= ALL / 2)
            seen = 3;
    }
    return 0;
}
