/* Keeps all that it knows in a file that nobody else has, which it maps twice, writes to by calls, cuts off, punches holes into, unmaps and maps
 * elsewhere; prints what is in it, which must be the same by every way of looking.
 * own_file STEPS memfd|tmpfile|closed|named|named-closed|named-locked|named-locked-closed [FILE]; prints to the file. Of those called named
 * the file has a name in this folder, and of those called locked a lock of its own (flock). */
#define _GNU_SOURCE
#include "tell.h"
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/file.h>
#include <sys/mman.h>

enum { PAGE = 4096, PAGES = 64 };

struct state {
    uint64_t step, random, pages;
};

static int fd;
/* Two mappings of all of it, of which the second moves. */
static unsigned char *first, *second;

static void *map(void *at, int prot, int offset, int pages, int flags)
{
    void *got = mmap(at, pages * PAGE, prot, MAP_SHARED | flags, fd, offset * PAGE);
    must(got != MAP_FAILED, "mmap");
    return got;
}

static void step(struct state *s)
{
    uint64_t r = next(&s->random);
    int at = 1 + r % (PAGES - 1), most = s->pages, kind = r >> 8 & 15;
    unsigned char *way = r >> 16 & 1 ? first : second, bytes[PAGE];
    memset(bytes, r >> 24, sizeof bytes);
    if (at >= most)
        at = 1;
    switch (fd < 0 && (kind < 5 || kind == 10) ? 15 : kind) {
    case 0:
        must(pwrite(fd, bytes, 3000, at * PAGE + 100) == 3000, "pwrite");
        break;
    case 1:
        must(lseek(fd, at * PAGE, SEEK_SET) == at * PAGE && write(fd, bytes, 2000) == 2000, "write");
        break;
    case 2:
        s->pages = 2 + (r >> 32) % (PAGES - 2);
        must(!ftruncate(fd, s->pages * PAGE), "ftruncate");
        break;
    case 3:
        must(!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at * PAGE, 2 * PAGE), "fallocate");
        break;
    case 4: {
        /* The second mapping lies elsewhere, after something was written there. */
        second[at * PAGE + 7] ^= 0x55;
        must(!munmap(second, PAGES * PAGE), "munmap");
        second = map(NULL, PROT_READ | PROT_WRITE, 0, PAGES, 0);
        break;
    }
    case 5: {
        second[at * PAGE + 8] += 3;
        if (r >> 33 & 1) {
            void *room = mmap(NULL, PAGES * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            must(room != MAP_FAILED, "mmap room");
            second = mremap(second, PAGES * PAGE, PAGES * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, room);
        } else {
            /* Of a length of nothing a shared mapping is doubled. */
            unsigned char *old = second;
            second = mremap(old, 0, PAGES * PAGE, MREMAP_MAYMOVE);
            must(!munmap(old, PAGES * PAGE), "munmap the old one");
        }
        must(second != MAP_FAILED, "mremap");
        break;
    }
    case 6:
        way[at * PAGE + 9] += 5;
        must(!madvise(way, PAGES * PAGE, MADV_DONTNEED), "madvise DONTNEED");
        break;
    case 7:
        must(!madvise(way + at * PAGE, PAGE, MADV_REMOVE), "madvise REMOVE");
        break;
    case 8:
        must(!mprotect(second, PAGES * PAGE, PROT_READ), "mprotect");
        first[at * PAGE + 10] += 7;
        must(!mprotect(second, PAGES * PAGE, PROT_READ | PROT_WRITE), "mprotect back");
        break;
    case 9: {
        int ends[2];
        must(!pipe(ends) && write(ends[1], bytes, 1000) == 1000, "pipe");
        must(read(ends[0], way + at * PAGE + 50, 1000) == 1000, "read into it");
        close(ends[0]);
        close(ends[1]);
        break;
    }
    case 10:
        /* Only the first one is left when the commit comes. */
        second[at * PAGE + 11] += 9;
        must(!munmap(second, PAGES * PAGE), "munmap");
        second = NULL;
        break;
    default:
        for (int i = 0; i < 3; i++)
            way[((at + i * 5) % (most - 1) + 1) * PAGE + (r >> 40) % PAGE] += r >> 52;
    }
}

int main(int argc, char **argv)
{
    int steps = argc > 1 ? atoi(argv[1]) : 1000;
    const char *kind = argc > 2 ? argv[2] : "memfd";
    if (argc > 3)
        must(dup2(open(argv[3], O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600), 1) == 1, argv[3]);
    char name[] = "own_file.XXXXXX";
    int is_named = !strncmp(kind, "named", 5);
    if (is_named)
        fd = mkostemp(name, O_CLOEXEC);
    else if (!strcmp(kind, "tmpfile"))
        fd = open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    else
        fd = memfd_create("own", MFD_CLOEXEC);
    must(fd >= 0 && !ftruncate(fd, PAGES * PAGE), "make a file");
    must(!strstr(kind, "locked") || !flock(fd, LOCK_EX | LOCK_NB), "flock");
    first = map(NULL, PROT_READ | PROT_WRITE, 0, PAGES, 0);
    second = map(NULL, PROT_READ | PROT_WRITE, 0, PAGES, 0);
    if (strstr(kind, "closed")) {
        close(fd);
        fd = -1;
    }
    struct state *s = (struct state *)first;
    *s = (struct state){.random = 88172645463325252, .pages = PAGES};
    while (s->step < (uint64_t)steps) {
        s->step++;
        step(s);
        s = (struct state *)first;
        s = (struct state *)(s->step & 1 && second ? second : first);
        uint64_t one = 0xcbf29ce484222325, other = one, third = one, len = s->pages * PAGE;
        one = mix(one, first, len);
        other = mix(other, second ? second : first, len);
        if (fd >= 0) {
            static unsigned char all[PAGES * PAGE];
            must(pread(fd, all, sizeof all, 0) == (ssize_t)len, "pread");
            third = mix(third, all, len);
        } else {
            third = one;
        }
        must(one == other && one == third, "the same by every way");
        tell("%lu %016lx\n", s->step, one);
        if (!second)
            second = map(NULL, PROT_READ | PROT_WRITE, 0, PAGES, 0);
    }
    must(!is_named || !unlink(name), "unlink");
    return 0;
}
