/* Makes a folder its root, where there is no /proc, and works there. */
#define _GNU_SOURCE
#include "tell.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 300;
    must(!mkdir("jail", 0700) && !mkdir("jail/in", 0700) && !chroot("jail") && !chdir("/in"), "chroot");
    for (int i = 0; i < rounds; i++) {
        char folder[256], *memory = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memory[i] = 1;
        struct stat st;
        int fd = open("grows", O_CREAT | O_WRONLY | O_APPEND, 0600);
        must(getcwd(folder, sizeof folder) && fd >= 0 && write(fd, "y", 1) == 1 && !fstat(fd, &st) && !close(fd), "work");
        tell("%d %s %ld %d\n", i, folder, (long)st.st_size, memory[i]);
    }
    return 0;
}
