/* Opens, duplicates, seeks and closes descriptors; prints their numbers and offsets, which a rollback must bring back. */
#define _GNU_SOURCE
#include "tell.h"
#include <fcntl.h>
#include <sys/socket.h>

enum { SLOTS = 40 };

int main(int argc, char **argv)
{
    int steps = argc > 1 ? atoi(argv[1]) : 3000, fd[SLOTS];
    uint64_t random = 5;
    memset(fd, -1, sizeof fd);
    int file = open("numbers", O_CREAT | O_RDWR | O_TRUNC, 0644);
    for (int i = 0; i < 1000; i++)
        must(dprintf(file, "%07d\n", i) == 8, "write the file");
    for (int step = 0; step < steps; step++) {
        int i = next(&random) % SLOTS, j = next(&random) % SLOTS, pair[2];
        char bytes[9] = "";
        switch (next(&random) % 8) {
        case 0:
        case 1:
            if (fd[i] >= 0)
                must(!close(fd[i]), "close");
            must((fd[i] = open("numbers", O_RDONLY | O_CLOEXEC)) >= 0, "open");
            must(lseek(fd[i], next(&random) % 900 * 8, SEEK_SET) >= 0, "lseek");
            break;
        case 2:
            if (fd[i] >= 0)
                must(!close(fd[i]), "close");
            fd[i] = -1;
            break;
        case 3: /* Shares the offset. */
            if (fd[i] < 0 || fd[j] >= 0)
                break;
            must((fd[j] = dup(fd[i])) >= 0, "dup");
            break;
        case 4: /* Takes the place of another. */
            if (fd[i] < 0 || fd[j] < 0 || i == j)
                break;
            must(dup2(fd[i], fd[j]) == fd[j], "dup2");
            break;
        case 5:
            must(!pipe(pair) && !close(pair[0]) && !close(pair[1]), "pipe");
            must(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair) && !close(pair[0]) && !close(pair[1]), "socketpair");
            break;
        case 6:
            if (fd[i] >= 0)
                must(!fcntl(fd[i], F_SETFD, step % 2 ? FD_CLOEXEC : 0), "F_SETFD");
            break;
        default:
            if (fd[i] >= 0)
                must(read(fd[i], bytes, 8) >= 0, "read");
        }
        if (fd[i] >= 0 && step % 3 == 0)
            tell("%d: %d at %ld flags %d %s", step, fd[i], (long)lseek(fd[i], 0, SEEK_CUR), fcntl(fd[i], F_GETFD),
                 bytes[0] ? bytes : "\n");
    }
    return 0;
}
