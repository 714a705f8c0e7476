/* Maps files without a name, closes them, and prints what is in them. What is written there is not rolled back: it is
 * written once, before anything is told of it.
 * unnamed ROUNDS */
#define _GNU_SOURCE
#include "tell.h"
#include <fcntl.h>
#include <sys/mman.h>

enum { PAGE = 4096, FILES = 3 };

/* 0: a memfd; 1: a file that is unlinked before it is mapped; 2: one that is unlinked when it is mapped and closed. */
static unsigned char *map(int kind, int round)
{
    int fd = kind == 0 ? memfd_create("unnamed", MFD_CLOEXEC) : open("unnamed", O_CREAT | O_TRUNC | O_RDWR, 0600);
    must(fd >= 0 && !ftruncate(fd, 8 * PAGE), "make a file");
    if (kind == 1)
        must(!unlink("unnamed"), "unlink");
    unsigned char *at = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    must(at != MAP_FAILED, "mmap");
    close(fd);
    if (kind == 2)
        must(!unlink("unnamed"), "unlink");
    for (int i = 0; i < 8 * PAGE; i++)
        at[i] = i * 7 + kind + round;
    return at;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 20;
    for (int round = 0; round < rounds; round++) {
        unsigned char *at[FILES];
        for (int kind = 0; kind < FILES; kind++)
            at[kind] = map(kind, round);
        for (int step = 0; step < 40; step++) {
            uint64_t sum = 0xcbf29ce484222325;
            for (int kind = 0; kind < FILES; kind++)
                sum = mix(sum, at[kind], 8 * PAGE);
            tell("%d %d %016lx\n", round, step, sum);
        }
        for (int kind = 0; kind < FILES; kind++)
            must(!munmap(at[kind], 8 * PAGE), "munmap");
    }
    return 0;
}
