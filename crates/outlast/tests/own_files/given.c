/* Makes a file without a name, maps it, writes to it, and gives it to a child, which counts there: prints the count for each line that it reads.
 * given fork|send|first: first sent, and then mapped
 * given named: gives it a name, and prints what others have counted there */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static void must(int holds, const char *what)
{
    if (holds)
        return;
    perror(what);
    exit(2);
}

static long *map(int fd)
{
    long *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    must(at != MAP_FAILED, "mmap");
    return at;
}

static int make(void)
{
    int fd = memfd_create("given", MFD_CLOEXEC);
    must(fd >= 0 && !ftruncate(fd, 4096), "memfd");
    return fd;
}

/* A descriptor that comes, or goes, with a message. */
static int pass(int way, int fd, int sends)
{
    char byte = 0, control[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec vector = {&byte, 1};
    struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    if (sends) {
        *rights = (struct cmsghdr){CMSG_LEN(sizeof fd), SOL_SOCKET, SCM_RIGHTS};
        memcpy(CMSG_DATA(rights), &fd, sizeof fd);
        must(sendmsg(way, &message, 0) == 1, "sendmsg");
        return fd;
    }
    must(recvmsg(way, &message, 0) == 1, "recvmsg");
    memcpy(&fd, CMSG_DATA(rights), sizeof fd);
    return fd;
}

static void name_it(void)
{
    char from[64], line[64];
    long count = 100;
    int fd = open(".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    must(fd >= 0 && write(fd, &count, sizeof count) == sizeof count, "make a file");
    snprintf(from, sizeof from, "/proc/self/fd/%d", fd);
    must(!linkat(AT_FDCWD, from, AT_FDCWD, "count", AT_SYMLINK_FOLLOW), "linkat");
    while (fgets(line, sizeof line, stdin)) {
        must(pread(fd, &count, sizeof count, 0) == sizeof count, "pread");
        printf("%ld %s", count, line);
        fflush(stdout);
    }
    exit(0);
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "named"))
        name_it();
    int first = argc > 1 && !strcmp(argv[1], "first"), sends = first || argc > 1 && !strcmp(argv[1], "send");
    int way[2], fd = -1;
    long *count = NULL;
    must(!socketpair(AF_UNIX, SOCK_STREAM, 0, way), "socketpair");
    if (!sends) {
        count = map(fd = make());
        *count = 100;
    }
    pid_t child = fork();
    must(child >= 0, "fork");
    char byte;
    if (!child) {
        close(way[0]);
        close(0);
        close(1);
        if (sends)
            count = map(pass(way[1], -1, 0));
        while (read(way[1], &byte, 1) == 1) {
            ++*count;
            must(write(way[1], &byte, 1) == 1, "write");
        }
        _exit(0);
    }
    close(way[1]);
    if (sends) {
        fd = make();
        if (first) {
            pass(way[0], fd, 1);
            /* So many commits find it in no use. */
            for (int i = 0; i < 6; i++, usleep(20000))
                must(write(2, ".", 1) == 1, "write");
        }
        count = map(fd);
        *count = 100;
        if (!first)
            pass(way[0], fd, 1);
    }
    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        must(write(way[0], "x", 1) == 1 && read(way[0], &byte, 1) == 1, "ask");
        printf("%ld %s", *count, line);
        fflush(stdout);
    }
    return 0;
}
