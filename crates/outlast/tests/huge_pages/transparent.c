/* Writes memory all over, again and again, and tells what the kernel makes of it: huge pages at first, small ones once tracking has
 * taken them apart, and huge ones again. Ends then: transparent SPANS PASSES, where it looks every so many passes. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { SPAN = 2 << 20 };

static long spans;

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
            inside = low < (unsigned long)memory + spans * SPAN && (unsigned long)memory < high;
        else if (inside && sscanf(line, "AnonHugePages: %ld kB", &kib) == 1)
            sum += kib;
    }
    fclose(maps);
    return sum;
}

int main(int count, char **words)
{
    if (count != 3)
        return 2;
    spans = atol(words[1]);
    long between = atol(words[2]), all = spans * SPAN / 1024;
    unsigned char *room = mmap(NULL, (spans + 1) * SPAN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED)
        return 2;
    unsigned char *memory = (unsigned char *)(((unsigned long)room + SPAN - 1) & ~(unsigned long)(SPAN - 1));
    if (madvise(memory, spans * SPAN, MADV_HUGEPAGE))
        return 4;
    int seen = 0;
    for (long pass = 0; seen < 3; pass++) {
        for (size_t at = 0; at < (size_t)spans * SPAN; at += 4096)
            memory[at + pass % 4096]++;
        if (pass % between)
            continue;
        long kib = huge_kib(memory);
        if (pass == 0 && kib == 0)
            return 4;
        /* Each in its turn. A commit may have come before the first look. */
        if (seen == 0 && kib >= all / 2)
            seen = 1;
        else if (seen == 1 && kib <= all / 4)
            seen = 2;
        else if (seen == 2 && kib >= all / 2)
            seen = 3;
    }
    return 0;
}
