/* Sends itself messages through queues of System V and of POSIX, and counts in semaphores: no message lost or doubled, none out of
 * order, and what a semaphore is to undo at the end it undoes only there. An argument "threads": a second thread takes them. */
#define _GNU_SOURCE
#include "tell.h"
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>

enum { TEXT = 200, MOST = 6 };

struct message {
    long type;
    char text[TEXT];
};

static int queue, set;
static mqd_t posix;
static uint64_t state = 5;

/* Messages of many lengths, none without a text, some that end with bytes that look like nothing. */
static int fill(char *text, int number)
{
    int len = snprintf(text, TEXT, "%d", number) + 1;
    while (len < 20 + number % 100)
        text[len++] = number % 3 ? 'x' : '\xff';
    return len;
}

static void change(int number, int by, int flags)
{
    struct sembuf operation = { number, by, flags };
    while (semop(set, &operation, 1))
        must(errno == EINTR, "semop");
}

static void tell_all(int number, int len, uint64_t sum)
{
    struct msqid_ds now;
    struct mq_attr attributes;
    must(!msgctl(queue, IPC_STAT, &now) && !mq_getattr(posix, &attributes), "look");
    tell("%d %d %016lx waiting %lu %ld semaphores %d %d %d\n", number, len, sum, (unsigned long)now.msg_qnum,
         attributes.mq_curmsgs, semctl(set, 0, GETVAL), semctl(set, 1, GETVAL), semctl(set, 2, GETVAL));
}

static void alone(int rounds)
{
    int sent = 0, taken = 0, sent_posix = 0, taken_posix = 0;
    uint64_t sum = 0;
    while (taken < rounds) {
        struct message message;
        unsigned priority;
        int len = 0;
        switch (next(&state) % 6) {
        case 0:
            if (sent - taken == MOST)
                break;
            message.type = 1 + sent % 3;
            len = fill(message.text, sent++);
            must(!msgsnd(queue, &message, len, 0), "msgsnd");
            break;
        case 1:
        case 2:
            if (sent == taken) {
                must(msgrcv(queue, &message, TEXT, 0, IPC_NOWAIT) < 0 && errno == ENOMSG, "there is none");
                break;
            }
            must((len = msgrcv(queue, &message, TEXT, 0, 0)) > 0, "msgrcv");
            must(atoi(message.text) == taken && message.type == 1 + taken % 3, "the next message");
            sum = mix(sum, message.text, len);
            taken++;
            break;
        case 3:
            if (sent_posix - taken_posix == MOST)
                break;
            len = fill(message.text, sent_posix++);
            must(!mq_send(posix, message.text, len, 4), "mq_send");
            break;
        case 4:
            if (sent_posix == taken_posix)
                break;
            must((len = mq_receive(posix, message.text, TEXT, &priority)) > 0 && priority == 4, "mq_receive");
            must(atoi(message.text) == taken_posix, "the next POSIX message");
            sum = mix(sum, message.text, len);
            taken_posix++;
            break;
        default:
            change(0, 1 + taken % 5, 0);
            change(1, 2, SEM_UNDO);
            if (semctl(set, 1, GETVAL) > 20)
                change(1, -20, SEM_UNDO);
            change(2, 3, taken % 2 ? SEM_UNDO : 0);
            change(2, -3, taken % 2 ? SEM_UNDO : 0);
            break;
        }
        if (len && taken % 3 == 0)
            tell_all(taken, len, sum);
    }
}

static void *echo(void *unused)
{
    struct message message;
    for (;;) {
        ssize_t len = msgrcv(queue, &message, TEXT, 0, 0);
        if (len < 0 && errno == EIDRM)
            return unused;
        must(len > 0, "msgrcv");
        must(!mq_send(posix, message.text, len, 0), "mq_send");
        change(0, 1, 0);
    }
    return unused;
}

static void with_thread(int rounds)
{
    pthread_t thread;
    must(!pthread_create(&thread, NULL, echo, NULL), "pthread_create");
    for (int i = 0; i < rounds; i++) {
        struct message message = { .type = 1 };
        int len = fill(message.text, i);
        must(!msgsnd(queue, &message, len, 0), "msgsnd");
        ssize_t got = mq_receive(posix, message.text, TEXT, NULL);
        must(got == len && atoi(message.text) == i, "the echo");
        change(0, -1, 0);
        tell_all(i, len, mix(1, message.text, len));
    }
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 500;
    char name[64];
    snprintf(name, sizeof name, "/queues.%d", getpid());
    struct mq_attr attributes = { .mq_maxmsg = MOST, .mq_msgsize = TEXT };
    must((posix = mq_open(name, O_CREAT | O_EXCL | O_RDWR, 0600, &attributes)) >= 0 && !mq_unlink(name), "mq_open");
    must((queue = msgget(IPC_PRIVATE, 0600)) >= 0 && (set = semget(IPC_PRIVATE, 3, 0600)) >= 0, "get");
    if (argc > 2)
        with_thread(rounds);
    else
        alone(rounds);
    must(!msgctl(queue, IPC_RMID, NULL) && !semctl(set, 0, IPC_RMID), "IPC_RMID");
    tell("the end\n");
    return 0;
}
