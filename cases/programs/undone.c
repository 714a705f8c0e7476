/* Holds semaphores that are to be free again when it ends, however it ends (SEM_UNDO): undone ROUNDS [HOW]. Another process waits
 * for them, and would have them too early if a death were taken for the end, or never if the end were taken for a death.
 *
 * HOW: remake: the program becomes another image meanwhile; alone: nobody waits. */
#define _GNU_SOURCE
#include "tell.h"
#include <sys/ipc.h>
#include <sys/sem.h>

enum { HELD, COUNTED, SAID, SEMAPHORES };

static int set;

static void change(int number, int by, int flags)
{
    struct sembuf operation = {number, by, flags};
    while (semop(set, &operation, 1))
        must(errno == EINTR, "semop");
}

/* Is not killed. */
static void other(void)
{
    change(HELD, -1, 0);
    int said = semctl(set, SAID, GETVAL), counted = semctl(set, COUNTED, GETVAL);
    tell("free, after %s, counted %d\n", said ? "all was said" : "too little", counted);
    must(!semctl(set, 0, IPC_RMID), "IPC_RMID");
    _exit(0);
}

static int work(int from, int to)
{
    for (int i = from; i < to; i++) {
        change(COUNTED, 2, i % 2 ? SEM_UNDO : 0);
        if (i % 2 == 0)
            change(COUNTED, -1, i % 4 ? SEM_UNDO : 0);
        if (i % 20 == 19) {
            /* What is to be undone is forgotten, and begins anew. */
            must(!semctl(set, COUNTED, SETVAL, 5), "SETVAL");
            change(COUNTED, -3, SEM_UNDO);
        }
        tell("%d held %d counted %d\n", i, semctl(set, HELD, GETVAL), semctl(set, COUNTED, GETVAL));
    }
    return to;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 300, remake = argc > 2 && argv[2][0] == 'r', alone = argc > 2 && argv[2][0] == 'a';
    if (argc > 3) {
        /* The second image. */
        set = atoi(argv[3]);
        work(rounds / 2, rounds);
    } else {
        must((set = semget(IPC_PRIVATE, SEMAPHORES, 0600)) >= 0, "semget");
        change(HELD, 1, 0), change(HELD, -1, SEM_UNDO);
        if (!alone && fork() == 0)
            other();
        work(0, remake ? rounds / 2 : rounds);
        if (remake) {
            char number[16];
            snprintf(number, sizeof number, "%d", set);
            execl(argv[0], argv[0], argv[1], argv[2], number, NULL);
            must(0, "execl");
        }
    }
    change(SAID, 1, 0);
    must(!alone || !semctl(set, 0, IPC_RMID), "IPC_RMID");
    return 0;
}
