/* One mapping, cut into two by a protection that differs for a while, moves as one when it is whole again: pieces ROUNDS.
 * A line is printed while it is cut. Anonymous memory, small and large, and a private mapping of a file. */
#define _GNU_SOURCE
#include "tell.h"
#include <fcntl.h>
#include <sys/mman.h>

enum { PAGE = 4096, SMALL = 20, LARGE = 320 };

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 60;
    int file = open("mapped", O_CREAT | O_RDWR, 0644);
    must(file >= 0 && !ftruncate(file, LARGE * PAGE), "make a file");
    for (int round = 0; round < rounds; round++) {
        size_t pages = round & 1 ? LARGE : SMALL;
        int of_file = round & 2, early = round & 4, mark = 1 + round % 255;
        char *at = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | (of_file ? 0 : MAP_ANONYMOUS),
                        of_file ? file : -1, 0);
        must(at != MAP_FAILED, "mmap");
        at[0] = mark;
        if (early)
            memset(at + PAGE, mark, (pages - 1) * PAGE);
        must(!mprotect(at, PAGE, round & 8 ? PROT_READ : PROT_NONE), "mprotect");
        tell("round %d\n", round);
        if (!early)
            memset(at + PAGE, mark, (pages - 1) * PAGE);
        must(!mprotect(at, PAGE, PROT_READ | PROT_WRITE), "mprotect");
        at[1] = mark;
        char *moved = mremap(at, pages * PAGE, (pages + 20) * PAGE, MREMAP_MAYMOVE);
        must(moved != MAP_FAILED, "mremap");
        must(moved[0] == (char)mark && moved[1] == (char)mark && moved[pages * PAGE - 1] == (char)mark, "content");
        must(!munmap(moved, (pages + 20) * PAGE), "munmap");
    }
    return 0;
}
