/* Uses descriptor numbers in every way that may meet those of somebody else in the process: all that it may have, those at
 * the very end, all numbers from three on closed, the folder that lists them, a limit that sinks for good.
 * crowd ROUNDS */
#define _GNU_SOURCE
#include "tell.h"
#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

/* How many are listed, but for the folder itself, and their sum. */
static void list(int round, const char *when)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;
    long sum = 0;
    must(folder != NULL, "/proc/self/fd");
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
        if (entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(folder)) {
            count++;
            sum += atoi(entry->d_name);
        }
    closedir(folder);
    tell("%d %s: %d listed, sum %ld\n", round, when, count, sum);
}

static void use_up(int round, int from)
{
    int fd, last = -1, taken = 0;
    while ((fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0) {
        taken++;
        last = fd;
    }
    must(errno == EMFILE, "take all descriptors");
    /* With the engine's few numbers out of reach some are missing, but never one of these. */
    tell("%d all taken: %s, the last works: %d\n", round, taken > from - 40 ? "nearly" : "too few", (int)read(last, &fd, 1));
    errno = 0;
    int none = open("present", O_CREAT | O_RDWR, 0600);
    tell("%d one more: %d %s\n", round, none, strerror(errno));
    must(!syscall(SYS_close_range, 3, ~0U, 0), "close_range");
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 20;
    for (int i = 0; i < rounds; i++) {
        struct rlimit limit = {1024 - 30 * i, 1024 - 30 * i};
        must(!setrlimit(RLIMIT_NOFILE, &limit), "setrlimit");
        use_up(i, limit.rlim_cur);
        list(i, "none");
        int file = open("kept", O_CREAT | O_RDWR | O_APPEND | O_CLOEXEC, 0600);
        /* The end of the range is where somebody else may sit. */
        for (unsigned fd = limit.rlim_cur - 70; fd < limit.rlim_cur; fd++) {
            must(dup2(file, fd) == (int)fd, "dup2");
            must(write(fd, "x", 1) == 1, "write");
        }
        list(i, "dup2");
        for (unsigned fd = 4; fd < limit.rlim_cur; fd++)
            close(fd);
        tell("%d size %ld, fcntl of what is closed: %d\n", i, (long)lseek(file, 0, SEEK_END),
             fcntl(limit.rlim_cur - 60, F_GETFD));
        list(i, "closed");
        must(!close(file) && !unlink("kept"), "unlink");
    }
    return 0;
}
