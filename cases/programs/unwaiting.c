/* Calls that never wait are not ended by a signal: unwaiting ROUNDS. A timer's handler, installed without SA_RESTART, comes
 * at any moment, also just before a call. Prints a line each round. */
#define _GNU_SOURCE
#include "tell.h"
#include <fcntl.h>
#include <linux/futex.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>

static volatile long ticks;

static void on_tick(int sig)
{
    ticks += sig == SIGALRM;
}

static void files(char *bytes, ssize_t len)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
    struct iovec parts[2] = { { bytes, len / 2 }, { bytes + len / 2, len / 2 } };
    int fd = open("file", O_RDWR | O_CREAT | O_EXCL, 0600);
    must(fd >= 0, "create");
    must(write(fd, bytes, len) == len && writev(fd, parts, 2) == len && pwrite(fd, bytes, len, 5) == len, "write");
    must(!lseek(fd, 0, SEEK_SET) && read(fd, bytes, len) == len && pread(fd, bytes, len, 1) == len, "read");
    must(!fcntl(fd, F_SETLK, &lock) && !flock(fd, LOCK_EX | LOCK_NB), "lock");
    must(fcntl(fd, F_GETFD) >= 0 && !ftruncate(fd, 10) && !fsync(fd), "change");
    must(!close(fd) && (fd = open("file", O_RDONLY)) >= 0 && !close(fd), "open");
    must(!mkdir("folder", 0700) && !rename("file", "folder/file") && !link("folder/file", "link"), "names");
    must(!symlink("link", "symlink") && !unlink("folder/file") && !unlink("link") && !unlink("symlink"), "names");
    must(!rmdir("folder"), "rmdir");
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 20, word = 0;
    struct sigaction action = { .sa_handler = on_tick };
    must(!sigaction(SIGALRM, &action, 0), "sigaction");
    struct itimerval often = { .it_interval = { .tv_usec = 50 }, .it_value = { .tv_usec = 50 } };
    must(!setitimer(ITIMER_REAL, &often, 0), "setitimer");
    char room[] = "unwaiting.XXXXXX", bytes[8192] = "";
    must(mkdtemp(room) && !chdir(room), "a folder");
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < 100; i++) {
            sem_t semaphore;
            must(!sem_init(&semaphore, 0, 0) && !sem_post(&semaphore), "sem_post");
            must(!syscall(SYS_futex, &word, FUTEX_WAKE, 1, 0, 0, 0), "wake");
            must(!syscall(SYS_futex, &word, FUTEX_WAKE_OP_PRIVATE, 1, 1, &word, FUTEX_OP(FUTEX_OP_SET, 8, 0, 0)), "wake and set");
            must(waitpid(-1, 0, WNOHANG) == -1 && errno == ECHILD, "a child that is not there");
            files(bytes, sizeof bytes);
        }
        tell("round %d\n", round);
    }
    must(!chdir("..") && !rmdir(room), "remove the folder");
    must(ticks > 0, "no tick at all");
    return 0;
}
