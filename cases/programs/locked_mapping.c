/* Locks a file, maps it shared and closes it: the lock lasts as long as the mapping, wherever it is moved, and however it ends. Prints
 * whether it does.
 * locked_mapping ROUNDS */
#define _GNU_SOURCE
#include "tell.h"
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>

enum { PAGE = 4096 };

static int is_locked(void)
{
    int fd = open("locked", O_RDWR | O_CLOEXEC);
    must(fd >= 0, "open");
    int refused = flock(fd, LOCK_EX | LOCK_NB);
    must(!refused || errno == EWOULDBLOCK, "flock");
    close(fd);
    return refused != 0;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 30;
    for (int round = 0; round < rounds; round++) {
        int fd = open("locked", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
        must(fd >= 0 && !ftruncate(fd, 2 * PAGE) && !flock(fd, LOCK_EX), "lock a file");
        char *at = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        must(at != MAP_FAILED, "mmap");
        close(fd);
        for (int step = 0; step < 20; step++)
            tell("%d %d %s\n", round, step, is_locked() ? "locked" : "free");
        if (round % 3 == 1) {
            char *room = mmap(NULL, 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            must(room != MAP_FAILED, "mmap");
            at = mremap(at, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, room);
            must(at == room, "mremap");
            must(!munmap(at, PAGE), "munmap");
            tell("%d moved %s\n", round, is_locked() ? "locked" : "free");
        }
        if (round % 3 == 2)
            must(mmap(at, 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at, "mmap");
        must(!munmap(at, 2 * PAGE), "munmap");
        tell("%d %s\n", round, is_locked() ? "locked" : "free");
    }
    return 0;
}
