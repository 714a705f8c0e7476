/* Opens, duplicates, seeks and closes descriptors. Now and then prints all numbers, offsets and flags, which a rollback must
 * bring back: between two prints nothing is seen by others, so that there is much to undo. */
#define _GNU_SOURCE
#include "tell.h"
#include <fcntl.h>
#include <sys/socket.h>

enum { SLOTS = 40, STEPS_A_LINE = 24 };

static void tell_all(int step, const int *fd)
{
    char line[SLOTS * 24];
    int n = snprintf(line, sizeof line, "%d:", step);
    for (int i = 0; i < SLOTS; i++)
        if (fd[i] >= 0)
            n += snprintf(line + n, sizeof line - n, " %d@%ld/%d", fd[i], (long)lseek(fd[i], 0, SEEK_CUR),
                          fcntl(fd[i], F_GETFD));
    line[n] = '\n';
    put_all(1, line, n + 1);
}

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
        char bytes[8];
        switch (next(&random) % 64 == 0 ? 8 : next(&random) % 8) {
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
            if (fd[i] < 0 || fd[j] >= 0)
                break;
            must((fd[j] = fcntl(fd[i], F_DUPFD_CLOEXEC, 100)) >= 100, "F_DUPFD_CLOEXEC");
            break;
        case 8: /* Others see this. */
            must(!pipe(pair) && !close(pair[0]) && !close(pair[1]), "pipe");
            must(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair) && !close(pair[0]) && !close(pair[1]), "socketpair");
            break;
        case 6:
            if (fd[i] >= 0)
                must(!fcntl(fd[i], F_SETFD, fcntl(fd[i], F_GETFD) ^ FD_CLOEXEC), "F_SETFD");
            break;
        default:
            if (fd[i] >= 0)
                must(read(fd[i], bytes, 8) >= 0, "read");
        }
        if (step % STEPS_A_LINE == 0)
            tell_all(step, fd);
    }
    return 0;
}
