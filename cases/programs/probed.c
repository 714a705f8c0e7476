/* Locks of three kinds (fcntl, open file description, flock) that another process tries to get all the time: probed ROUNDS. It must never
 * get what is held from beginning to end, whatever else is locked and let go of beside it. */
#define _GNU_SOURCE
#include "tell.h"
#include <fcntl.h>
#include <sys/file.h>

enum { KINDS = 3 };
static const char *const NAME[KINDS] = { "process", "description", "whole" };

/* Locks or unlocks one byte; of the third kind the file. */
static int lock(int kind, int fd, int type, long at)
{
    struct flock lock = { .l_type = type, .l_whence = SEEK_SET, .l_start = at, .l_len = 1 };
    switch (kind) {
    case 0:
        return fcntl(fd, F_SETLK, &lock);
    case 1:
        return fcntl(fd, F_OFD_SETLK, &lock);
    default:
        return flock(fd, (type == F_UNLCK ? LOCK_UN : type == F_RDLCK ? LOCK_SH : LOCK_EX) | LOCK_NB);
    }
}

/* Until the pipe ends. */
static void probe(int end)
{
    int fd[KINDS];
    char byte;
    for (int kind = 0; kind < KINDS; kind++)
        must((fd[kind] = open(NAME[kind], O_RDWR)) >= 0, "open");
    must(!fcntl(end, F_SETFL, O_NONBLOCK), "the pipe");
    while (read(end, &byte, 1) == -1 && errno == EAGAIN) {
        for (int kind = 0; kind < KINDS; kind++)
            if (!lock(kind, fd[kind], F_RDLCK, 0))
                must(0, NAME[kind]);
        usleep(200);
    }
    _exit(0);
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 100;
    int fd[KINDS], end[2], done[2];
    for (int kind = 0; kind < KINDS; kind++) {
        must((fd[kind] = open(NAME[kind], O_RDWR | O_CREAT, 0644)) >= 0, "open");
        must(!lock(kind, fd[kind], F_WRLCK, 0), "lock");
    }
    must(!pipe(end) && !pipe(done), "pipe");
    pid_t child = fork();
    must(child >= 0, "fork");
    if (!child) {
        /* What it has inherited is its parent's lock as well. */
        for (int kind = 0; kind < KINDS; kind++)
            close(fd[kind]);
        close(end[1]);
        close(done[0]);
        probe(end[0]);
    }
    must(!close(end[0]) && !close(done[1]), "close");
    for (long round = 1; round <= rounds; round++) {
        for (int kind = 0; kind < 2; kind++) {
            must(!lock(kind, fd[kind], F_WRLCK, round), "another byte");
            if (round > 3)
                must(!lock(kind, fd[kind], F_UNLCK, round - 3), "unlock");
        }
        tell("%ld\n", round);
    }
    must(!close(end[1]), "close");
    tell("held all the time\n");
    /* Until the other one, which may be nobody's child by now, has let go of it. */
    char byte;
    must(read(done[0], &byte, 1) == 0, "the other process");
    for (int kind = 0; kind < KINDS; kind++)
        must(!unlink(NAME[kind]), "unlink");
    return 0;
}
