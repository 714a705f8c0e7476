/* Sends messages to another process, which waits for them, and counts semaphores up and down with it: handed ROUNDS. What is sent is
 * handed over at once, so that the queues never tell; every message has to come once, and every change to be made once. */
#define _GNU_SOURCE
#include "tell.h"
#include <mqueue.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>

enum { TEXT = 64, END = -1 };
/* Of the semaphores: what the other one waits for, what this one waits for, what both take turns with. */
enum { FOR_OTHER, FOR_THIS, TURN, SEMAPHORES };

struct message {
    long type;
    char text[TEXT];
};

static mqd_t posix;
static int queue, set;

static void change(int number, int by, int flags)
{
    struct sembuf operation = {number, by, flags};
    while (semop(set, &operation, 1))
        must(errno == EINTR, "semop");
}

static int take_posix(void)
{
    char text[TEXT];
    must(mq_receive(posix, text, TEXT, NULL) > 0, "mq_receive");
    return atoi(text);
}

static int take(void)
{
    struct message message;
    must(msgrcv(queue, &message, TEXT, 0, 0) > 0, "msgrcv");
    return atoi(message.text);
}

/* Is never killed, and notices what comes twice, or not at all. */
static void other(void)
{
    int rounds = 0;
    for (int number; (number = take_posix()) != END; rounds++) {
        if (number != rounds)
            tell("POSIX message %d in the place of %d\n", number, rounds);
        int same = take();
        if (same != rounds)
            tell("message %d in the place of %d\n", same, rounds);
        change(FOR_OTHER, -1, 0);
        change(FOR_THIS, 1, 0);
        change(TURN, -1, 0), change(TURN, 1, 0);
    }
    tell("%d rounds, left %d %d, turn %d\n", rounds, semctl(set, FOR_OTHER, GETVAL), semctl(set, FOR_THIS, GETVAL),
         semctl(set, TURN, GETVAL));
    must(!msgctl(queue, IPC_RMID, NULL) && !semctl(set, 0, IPC_RMID), "IPC_RMID");
    _exit(0);
}

static void send_posix(int number)
{
    char text[TEXT];
    /* Not all end with a zero. */
    int len = snprintf(text, TEXT, "%d ", number) + number % 2;
    must(!mq_send(posix, text, len, 3), "mq_send");
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 300;
    char name[64];
    struct mq_attr attributes = {.mq_maxmsg = 4, .mq_msgsize = TEXT};
    snprintf(name, sizeof name, "/handed.%d", getpid());
    must((posix = mq_open(name, O_CREAT | O_EXCL | O_RDWR, 0600, &attributes)) >= 0 && !mq_unlink(name), "mq_open");
    must((queue = msgget(IPC_PRIVATE, 0600)) >= 0 && (set = semget(IPC_PRIVATE, SEMAPHORES, 0600)) >= 0, "get");
    change(TURN, 1, 0);
    if (fork() == 0)
        other();
    for (int i = 0; i < rounds; i++) {
        struct message message = {.type = 1 + i % 3};
        send_posix(i);
        int len = snprintf(message.text, TEXT, "%d", i) + 1;
        must(!msgsnd(queue, &message, len, 0), "msgsnd");
        change(FOR_OTHER, 1, 0);
        change(TURN, -1, SEM_UNDO), change(TURN, 1, SEM_UNDO);
        change(FOR_THIS, -1, 0);
    }
    send_posix(END);
    return 0;
}
