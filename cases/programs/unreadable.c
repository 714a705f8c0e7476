/* Writes to memory, takes away the permission to read it, and moves it: what was there is there when it can be read again. */
#define _GNU_SOURCE
#include "tell.h"
#include <sys/mman.h>

enum { PAGE = 4096, PAGES = 24 };

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 100;
    char *kept[4] = {0};
    for (int i = 0; i < rounds; i++) {
        char *memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        must(memory != MAP_FAILED, "mmap");
        for (int page = 0; page < PAGES; page += 1 + i % 3)
            memset(memory + page * PAGE, 'a' + (i + page) % 26, 100 + i);
        if (i % 2)
            tell("%d written\n", i);
        /* All of it or some pages in the middle, perhaps written just now. */
        int first = i % 5, count = i % 3 ? PAGES - first : 4;
        memory[first * PAGE + 7] = 'A' + i % 26;
        must(!mprotect(memory + first * PAGE, count * PAGE, PROT_NONE), "mprotect");
        if (i % 4 < 2)
            tell("%d hidden\n", i);
        /* To a place of its own, and longer now and then. */
        char *place = mmap(NULL, 2 * PAGES * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        must(place != MAP_FAILED, "mmap");
        int length = count + (i % 7 == 0 ? 5 : 0);
        char *moved = mremap(memory + first * PAGE, count * PAGE, length * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, place);
        must(moved == place, "mremap");
        tell("%d moved\n", i);
        kept[i % 4] = moved;
        char *old = kept[(i + 1) % 4];
        if (old) {
            must(!mprotect(old, 4 * PAGE, PROT_READ), "mprotect back");
            tell("%d shown %016lx\n", i, mix(7, old, 4 * PAGE));
            must(!mprotect(old, 4 * PAGE, i % 2 ? PROT_NONE : PROT_READ | PROT_WRITE), "mprotect again");
        }
    }
    return 0;
}
