/* Maps, unmaps, moves, protects, discards and grows memory; prints a checksum of all of it every few steps. */
#define _GNU_SOURCE
#include "tell.h"
#include <fcntl.h>
#include <sys/mman.h>

enum { SLOTS = 24, PAGE = 4096, MANY = 600 };

static struct { unsigned char *at; size_t pages; int of_file, mixed; } slot[SLOTS];

static void fill(unsigned char *at, size_t pages, uint64_t *random)
{
    for (size_t i = 0; i < pages; i++)
        for (int j = 0; j < 8; j++)
            at[i * PAGE + next(random) % PAGE] = next(random);
}

int main(int argc, char **argv)
{
    int steps = argc > 1 ? atoi(argv[1]) : 2000;
    uint64_t random = 11;
    int file = open("mapped", O_CREAT | O_RDWR, 0644);
    must(file >= 0 && !ftruncate(file, 512 * PAGE) && pwrite(file, "beginning", 9, 0) == 9, "make a file");
    /* Programs that choose addresses at random come everywhere. */
    for (uintptr_t hint = 0x100000000000; hint < 0x300000000000; hint += 0x3000000000) {
        void *wished = mmap((void *)hint, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        must(wished != MAP_FAILED && !munmap(wished, PAGE), "a mapping at an address wished for");
    }
    unsigned char *heap = sbrk(0);
    size_t grown = 0;
    for (int step = 0; step < steps; step++) {
        int i = next(&random) % SLOTS;
        /* One is large enough to be restored lazily. */
        size_t pages = 1 + next(&random) % 40 + (i == 0 ? 300 : 0);
        unsigned char *at = slot[i].at;
        switch (next(&random) % 400 == 0 ? 9 : next(&random) % 9) {
        case 0:
        case 1:
            if (at)
                must(!munmap(at, slot[i].pages * PAGE), "munmap");
            at = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            must(at != MAP_FAILED, "mmap");
            slot[i].at = at;
            slot[i].pages = pages;
            slot[i].of_file = slot[i].mixed = 0;
            fill(at, pages, &random);
            break;
        case 2: /* What was mapped piece by piece may not move as one. */
            if (!at || slot[i].mixed)
                break;
            at = mremap(at, slot[i].pages * PAGE, pages * PAGE, MREMAP_MAYMOVE);
            must(at != MAP_FAILED, "mremap");
            slot[i].at = at;
            slot[i].pages = pages;
            break;
        case 3:
            if (at)
                must(!madvise(at, (1 + slot[i].pages / 2) * PAGE, MADV_DONTNEED), "madvise");
            break;
        case 4:
            if (!at)
                break;
            must(!mprotect(at, PAGE, step % 2 ? PROT_READ : PROT_NONE), "mprotect");
            must(!mprotect(at, PAGE, PROT_READ | PROT_WRITE), "mprotect");
            at[0]++;
            break;
        case 5:
            if (at)
                must(!munmap(at, slot[i].pages * PAGE), "munmap");
            at = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
            must(at != MAP_FAILED, "map the file");
            slot[i].at = at;
            slot[i].pages = 16;
            slot[i].of_file = 1;
            slot[i].mixed = 0;
            at[next(&random) % PAGE]++;
            break;
        case 6: {
            size_t want = next(&random) % 64 * PAGE;
            must(!brk(heap + want), "brk");
            if (want > grown)
                fill(heap + grown, (want - grown) / PAGE, &random);
            grown = want;
            break;
        }
        case 7: /* A new mapping in the middle of an old one. */
            if (!at || slot[i].pages < 3 || slot[i].of_file)
                break;
            must(mmap(at + PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
                     at + PAGE, "mmap in the middle");
            slot[i].mixed = 1;
            break;
        case 9: /* More holes than anybody would want to remember. */
            at = mmap(NULL, 2 * MANY * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            must(at != MAP_FAILED, "mmap");
            for (int j = 0; j < MANY; j++) {
                at[2 * j * PAGE] = at[(2 * j + 1) * PAGE] = j;
                must(munmap(at + 2 * j * PAGE, PAGE) == 0, "unmap every other page");
            }
            for (int j = 0; j < MANY; j++)
                must(at[(2 * j + 1) * PAGE] == (unsigned char)j, "what lies between holes");
            must(!munmap(at, 2 * MANY * PAGE), "munmap");
            break;
        default:
            if (at)
                fill(at, slot[i].pages, &random);
        }
        /* What was thrown away is committed before anybody looks at it. */
        if (step % 10 == 5)
            tell("%d\n", step);
        if (step % 10 == 0) {
            uint64_t sum = mix(0xcbf29ce484222325, heap, grown);
            for (int j = 0; j < SLOTS; j++)
                sum = mix(sum, slot[j].at, slot[j].at ? slot[j].pages * PAGE : 0);
            tell("%d %016lx\n", step, sum);
        }
    }
    return 0;
}
