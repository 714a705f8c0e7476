/* Makes a folder its root, where there is no /proc, and works there: jail ROUNDS. With files, a pipe, threads' and signals' kin, and memory
 * that is mapped, protected and given up. */
#define _GNU_SOURCE
#include "tell.h"
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { SIZE = 1 << 16, PAGE = 4096 };

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 300;
    must(!mkdir("jail", 0700) && !mkdir("jail/in", 0700) && !chroot("jail") && !chdir("/in"), "chroot");
    int counter = eventfd(0, EFD_NONBLOCK), epoll = epoll_create1(0), ends[2];
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 7};
    must(counter >= 0 && epoll >= 0 && !pipe(ends), "descriptors");
    must(!epoll_ctl(epoll, EPOLL_CTL_ADD, counter, &event), "epoll_ctl");
    char *kept = NULL;
    for (int i = 0; i < rounds; i++) {
        char folder[256], *memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        must(memory != MAP_FAILED, "mmap");
        memory[i % SIZE] = (char)i;
        must(!kept || kept[(i - 1) % SIZE] == (char)(i - 1), "the memory of the round before");
        must(!kept || !munmap(kept, SIZE), "munmap");
        kept = memory;
        must(!mprotect(memory + SIZE - PAGE, PAGE, PROT_READ), "mprotect");
        struct stat st;
        int fd = open("grows", O_CREAT | O_WRONLY | O_APPEND, 0600);
        must(getcwd(folder, sizeof folder) && fd >= 0 && write(fd, "y", 1) == 1 && !fstat(fd, &st) && !close(fd), "work");
        uint64_t one = 1, count = 0;
        must(write(counter, &one, 8) == 8 && epoll_wait(epoll, &event, 1, 0) == 1 && event.data.u64 == 7, "an event");
        must(read(counter, &count, 8) == 8 && count == 1, "a count");
        must(write(ends[1], &i, sizeof i) == sizeof i && read(ends[0], &fd, sizeof fd) == sizeof fd && fd == i, "a pipe");
        must(access("/proc", F_OK) && access("/etc", F_OK), "what there is");
        tell("%d %s %ld\n", i, folder, (long)st.st_size);
    }
    return 0;
}
