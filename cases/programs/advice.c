/* Advises its memory in every way that the kernel keeps; prints what it has kept after every step: advice STEPS */
#define _GNU_SOURCE
#include "tell.h"
#include <fcntl.h>
#include <sys/mman.h>

enum { PAGE = 4096, PAGES = 8, PLACES = 5, LARGE = 2 << 20 };

static unsigned char *place[PLACES];
static size_t length[PLACES];

/* In the words of VmFlags: do not copy, wipe, merge, huge, not huge, do not dump, sequential, random. */
static const char *const marks[] = {" dc", " wf", " mg", " hg", " nh", " dd", " sr", " rr"};

static int is_guarded(unsigned char *at)
{
    uint64_t word = 0;
    int map = open("/proc/self/pagemap", O_RDONLY);
    must(map >= 0 && pread(map, &word, 8, (uintptr_t)at / PAGE * 8) == 8, "pagemap");
    close(map);
    return word >> 58 & 1;
}

/* What is kept of each part of a place, and which of its first pages are guarded. */
static int state(char *text, int i)
{
    char line[512], last[64] = "none", now[64];
    unsigned long low, high, from = 0;
    int inside = 0, n = 0;
    FILE *maps = fopen("/proc/self/smaps", "r");
    must(maps != NULL, "open smaps");
    while (fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%lx-%lx ", &low, &high) == 2) {
            inside = low < (unsigned long)place[i] + length[i] && (unsigned long)place[i] < high;
            from = low > (unsigned long)place[i] ? low - (unsigned long)place[i] : 0;
        } else if (inside && !strncmp(line, "VmFlags:", 8)) {
            now[0] = 0;
            for (unsigned m = 0; m < sizeof marks / sizeof *marks; m++)
                if (strstr(line, marks[m]))
                    strcat(now, marks[m]);
            /* Mappings that are alike need not be one. */
            if (strcmp(now, last))
                n += sprintf(text + n, " %lx:%s", from / PAGE, now);
            strcpy(last, now);
        }
    }
    fclose(maps);
    for (int page = 0; page < PAGES; page++)
        text[n++] = is_guarded(place[i] + page * PAGE) ? 'G' : '.';
    text[n] = 0;
    return n;
}

static void map(int i)
{
    /* Reserved around it, so that no two are neighbours, wherever they lie. */
    length[i] = i == PLACES - 1 ? LARGE : PAGES * PAGE;
    unsigned char *room = mmap(NULL, length[i] + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(room != MAP_FAILED, "room");
    place[i] = mmap(room + PAGE, length[i], PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    must(place[i] != MAP_FAILED, "map");
}

int main(int argc, char **argv)
{
    static const int advices[] = {0, 1, 2, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 102, 103, 4};
    long steps = argc > 1 ? atol(argv[1]) : 200;
    uint64_t random = 11;
    for (int i = 0; i < PLACES; i++)
        map(i);
    for (long step = 0; step < steps; step++) {
        int i = next(&random) % PLACES, r = 0, what = next(&random) % 20;
        size_t from = next(&random) % PAGES * PAGE, len = next(&random) % 2 ? length[i] - from : PAGE;
        if (what == 0) {
            munmap(place[i] - PAGE, length[i] + 2 * PAGE);
            map(i);
        } else if (what == 1 && length[i] == PAGES * PAGE) {
            unsigned char *old = place[i];
            map(i);
            /* Each page is one mapping, or a part of one. */
            for (size_t at = 0; at < length[i]; at += PAGE)
                must(mremap(old + at, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, place[i] + at) == place[i] + at, "mremap");
            munmap(old - PAGE, length[i] + 2 * PAGE);
        } else {
            if (!is_guarded(place[i]))
                place[i][0] = step;
            int advice = advices[next(&random) % (sizeof advices / sizeof *advices)];
            r = madvise(place[i] + from, len, advice) ? errno : 0;
        }
        char text[4096];
        int n = 0;
        for (int k = 0; k < PLACES; k++)
            n += state(text + n, k);
        text[n] = 0;
        /* tell() takes short lines only. */
        tell("%ld: %d, %x\n", step, r, (unsigned)mix(step, text, n));
        if (step % 16 == 0)
            tell("%.400s\n", text);
    }
    return 0;
}
