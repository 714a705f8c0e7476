/* Memory whose content the program gives up in all ways of madvise: given_up ROUNDS. Each round fills pages, gives some of them up, also
 * such as are locked and such as have a hole beside them, and looks at all of them after the output that follows. */
#define _GNU_SOURCE
#include "tell.h"
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif

enum { PAGE = 4096, PAGES = 8, WAYS = 5 };

static unsigned char *place[WAYS];

/* As madvise, through a descriptor of this process; kernels before 6.13 take no such advice in this way, and containers
 * forbid it. */
static int by_descriptor(unsigned char *at, size_t len, int advice)
{
    static int self = -1;
    if (self < 0)
        self = syscall(SYS_pidfd_open, getpid(), 0);
    struct iovec ranges[2] = {{at, len / 2}, {at + len / 2, len - len / 2}};
    long done = syscall(SYS_process_madvise, self, ranges, 2, advice, 0);
    if (done == -1 && (errno == EINVAL || errno == EPERM))
        return madvise(at, len, advice);
    return done == (long)len ? 0 : -1;
}

static void look(int way, long round, int from, int to)
{
    for (int page = 0; page < PAGES; page++) {
        int wanted = page >= from && page < to ? 0 : (unsigned char)(round + page + 1);
        if ((way == 2 || way == 3) && page >= 4 && page < 6)
            continue;
        unsigned char *p = place[way] + page * PAGE;
        for (int i = 0; i < PAGE; i += 512)
            if (p[i] != wanted) {
                fprintf(stderr, "way %d, page %d: %d instead of %d\n", way, page, p[i], wanted);
                exit(2);
            }
    }
}

static void fill(int way, long round)
{
    for (int page = 0; page < PAGES; page++)
        if ((way != 2 && way != 3) || page < 4 || page >= 6)
            memset(place[way] + page * PAGE, (unsigned char)(round + page + 1), PAGE);
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 100;
    for (int way = 0; way < WAYS; way++) {
        place[way] = mmap(NULL, (PAGES + 2) * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        must(place[way] != MAP_FAILED, "mmap");
        place[way] += PAGE;
        must(!mprotect(place[way], PAGES * PAGE, PROT_READ | PROT_WRITE), "mprotect");
    }
    must(!mlock(place[1], PAGES * PAGE), "mlock");
    must(!munmap(place[2] + 4 * PAGE, 2 * PAGE), "a hole");
    /* A mapping of its own. */
    must(!mprotect(place[3] + 4 * PAGE, 2 * PAGE, PROT_READ) && !mlock(place[3] + 4 * PAGE, 2 * PAGE), "mlock");
    for (long round = 0; round < rounds; round++) {
        for (int way = 0; way < WAYS; way++)
            fill(way, round);
        tell("%ld filled\n", round);
        must(!madvise(place[0] + 2 * PAGE, 4 * PAGE, MADV_DONTNEED), "what is free");
        must(!madvise(place[1] + 2 * PAGE, 4 * PAGE, MADV_DONTNEED_LOCKED), "what is locked");
        /* What it can be done with, it is done with. */
        must(madvise(place[2] + 2 * PAGE, 6 * PAGE, MADV_DONTNEED) == -1 && errno == ENOMEM, "beside a hole");
        must(madvise(place[3] + 2 * PAGE, 6 * PAGE, MADV_DONTNEED) == -1 && errno == EINVAL, "up to what is locked");
        must(!by_descriptor(place[4] + 2 * PAGE, 4 * PAGE, MADV_DONTNEED), "through a descriptor");
        tell("%ld given up\n", round);
        look(0, round, 2, 6);
        look(1, round, 2, 6);
        look(2, round, 2, PAGES);
        look(3, round, 2, 4);
        look(4, round, 2, 6);
        tell("%ld looked at\n", round);
        look(0, round, 2, 6);
        look(1, round, 2, 6);
        look(2, round, 2, PAGES);
        look(3, round, 2, 4);
        look(4, round, 2, 6);
    }
    return 0;
}
