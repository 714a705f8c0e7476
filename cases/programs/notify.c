/* Is told of messages (mq_notify), each time anew: notify KIND ROUNDS [apart]. A notification that is lost is a hang.
 *
 * KIND: signal, realtime: a handler; wait: sigwaitinfo; file: a signalfd; thread: SIGEV_THREAD; none: nothing (SIGEV_NONE), but it is
 * registered. With "apart" another process sends the messages, some time later and whoever lives then; else the program itself. */
#define _GNU_SOURCE
#include "tell.h"
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>

enum { TEXT = 32, END = -1 };

static mqd_t queue;
static int kind, signal_number, file, orders[2];
static sigset_t blocked, before;
static volatile int told, value, code;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void on_signal(int sig, siginfo_t *info, void *context)
{
    (void)sig, (void)context;
    told++;
    value = info->si_int;
    code = info->si_code;
}

static void on_thread(union sigval given)
{
    pthread_mutex_lock(&lock);
    told++;
    value = given.sival_int;
    code = SI_MESGQ;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}

static int ask(int number)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = signal_number, .sigev_value.sival_int = number};
    if (kind == 'n')
        event.sigev_notify = SIGEV_NONE;
    if (kind == 't') {
        event.sigev_notify = SIGEV_THREAD;
        event.sigev_notify_function = on_thread;
    }
    return mq_notify(queue, &event);
}

static void await_told(void)
{
    struct signalfd_siginfo record;
    siginfo_t info;
    switch (kind) {
    case 't':
        pthread_mutex_lock(&lock);
        while (!told)
            pthread_cond_wait(&changed, &lock);
        pthread_mutex_unlock(&lock);
        break;
    case 'n':
        break;
    case 'w':
        while (sigwaitinfo(&blocked, &info) < 0)
            must(errno == EINTR, "sigwaitinfo");
        on_signal(0, &info, NULL);
        break;
    case 'f':
        must(read(file, &record, sizeof record) == sizeof record, "read the signalfd");
        told++, value = record.ssi_int, code = record.ssi_code;
        break;
    default:
        while (!told)
            sigsuspend(&before);
    }
}

/* A close of any of its descriptors of the queue ends that it is registered: of the next message it is not told. */
static void close_one(int number)
{
    char answer[TEXT];
    must(!close(dup(queue)), "close a descriptor of the queue");
    must(!mq_send(queue, "nobody is told", 15, 0) && mq_receive(queue, answer, TEXT, NULL) > 0, "a message that nobody is told of");
    tell("%d closed one, told %d times, message %s\n", number, told, answer);
    must(!ask(number), "mq_notify after a close");
}

/* Sends what it is asked for, some time later. */
static void send_apart(void)
{
    char text[TEXT];
    uint64_t state = 7;
    int number;
    while (read(orders[0], &number, sizeof number) == sizeof number && number != END) {
        snprintf(text, sizeof text, "%d", number);
        usleep(next(&state) % 4000);
        must(!mq_send(queue, text, strlen(text) + 1, 0), "send what was ordered");
    }
    _exit(0);
}

int main(int argc, char **argv)
{
    kind = argc > 1 ? argv[1][0] : 's';
    int rounds = argc > 2 ? atoi(argv[2]) : 100, apart = argc > 3;
    signal_number = kind == 's' ? SIGUSR1 : SIGRTMIN + 3;
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
    must(!sigaction(signal_number, &action, NULL), "sigaction");
    sigemptyset(&blocked);
    sigaddset(&blocked, signal_number);
    must(!sigprocmask(SIG_BLOCK, &blocked, &before), "sigprocmask");
    must((file = signalfd(-1, &blocked, SFD_CLOEXEC)) >= 0, "signalfd");
    char name[64];
    struct mq_attr attributes = {.mq_maxmsg = 4, .mq_msgsize = TEXT};
    snprintf(name, sizeof name, "/notify.%d", getpid());
    must((queue = mq_open(name, O_CREAT | O_EXCL | O_RDWR, 0600, &attributes)) >= 0 && !mq_unlink(name), "mq_open");
    must(!pipe(orders), "pipe");
    if (apart && fork() == 0)
        send_apart();
    for (int i = 0; i < rounds; i++) {
        char text[TEXT], answer[TEXT];
        snprintf(text, sizeof text, "%d", i);
        must(!ask(i), "mq_notify");
        tell("%d asked\n", i);
        errno = 0;
        int second = ask(1000 + i);
        tell("%d again %d %s\n", i, second, second ? strerrorname_np(errno) : "");
        if (i % 5 == 4 && kind != 't') {
            must(!mq_notify(queue, NULL), "take it back");
            tell("%d taken back\n", i);
            must(!ask(i), "mq_notify after it was taken back");
            tell("%d asked anew\n", i);
        }
        if (i % 5 == 2 && kind != 't')
            close_one(i);
        if (apart)
            must(write(orders[1], &i, sizeof i) == sizeof i, "order a message");
        else
            must(!mq_send(queue, text, strlen(text) + 1, 0), "mq_send");
        if (!apart && i % 2)
            tell("%d sent\n", i);
        await_told();
        int number = value, how = code, times = told;
        told = 0;
        must(mq_receive(queue, answer, TEXT, NULL) > 0, "mq_receive");
        tell("%d told %d times of %d, code %d, message %s\n", i, times, number, how, answer);
    }
    int end = END;
    must(write(orders[1], &end, sizeof end) == sizeof end, "order the end");
    tell("the end\n");
    return 0;
}
