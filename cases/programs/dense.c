/* Writes memory all over, again and again; now and then it writes little, discards, protects, maps anew or moves: dense PASSES */
#define _GNU_SOURCE
#include "tell.h"
#include <sys/mman.h>

enum { PAGE = 4096, SPAN = 2 << 20, SPANS = 3, PAGES = SPANS * SPAN / PAGE };

static unsigned char *memory;

static uint64_t *word(size_t page)
{
    return (uint64_t *)(memory + page * PAGE + page % 500 * 8);
}

static void advise(void *at, size_t len)
{
    must(!madvise(at, len, MADV_HUGEPAGE) || errno == EINVAL, "advice");
}

int main(int argc, char **argv)
{
    long passes = argc > 1 ? atol(argv[1]) : 2000;
    uint64_t random = 3, sum = 0;
    unsigned char *room = mmap(NULL, (2 * SPANS + 2) * SPAN, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(room != MAP_FAILED, "room");
    room = (unsigned char *)(((uintptr_t)room + SPAN - 1) & ~(uintptr_t)(SPAN - 1));
    unsigned char *places[2] = {room, room + SPANS * SPAN};
    memory = mmap(places[0], SPANS * SPAN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    must(memory == places[0], "memory");
    advise(memory, SPANS * SPAN);
    for (long pass = 0; pass < passes; pass++) {
        for (size_t page = 0; page < PAGES; page++)
            *word(page) = *word(page) * 3 + pass + page;
        if (pass % 30000 == 29999) {
            unsigned char *at = memory + next(&random) % PAGES * PAGE;
            switch (next(&random) % 5) {
            case 0:
                must(!madvise(at, PAGE, MADV_DONTNEED), "discard");
                break;
            case 1:
                must(!mprotect(at, PAGE, PROT_READ) && !mprotect(at, PAGE, PROT_READ | PROT_WRITE), "protect");
                break;
            case 2: {
                unsigned char *to = places[memory == places[0]];
                must(mremap(memory, SPANS * SPAN, SPANS * SPAN, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to, "move");
                memory = to;
                break;
            }
            case 3:
                for (int n = 0; n < 20000000; n++)
                    *word(n % 7) += n;
                break;
            default:
                must(mmap(at, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at, "map");
                advise(at, PAGE);
            }
        }
        if (pass % 100000 == 99999) {
            for (size_t page = 0; page < PAGES; page++)
                sum = mix(sum, word(page), 8);
            tell("%ld: %lx\n", pass, (unsigned long)sum);
        }
    }
    return 0;
}
