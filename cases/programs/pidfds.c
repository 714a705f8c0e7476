/* pidfds that a program has of itself and of its threads: pidfds ROUNDS THREADS. They must stand for those that live, in whatever
 * process that is; one of a child that has ended must not. */
#define _GNU_SOURCE
#include "tell.h"
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { MOST = 4, PIDFD_FOR_THREAD = O_EXCL };

static volatile sig_atomic_t taken;
static pthread_barrier_t begun, done;
static pid_t tids[MOST];

static void on_signal(int sig)
{
    (void)sig;
    taken++;
}

static void *stand(void *place)
{
    tids[(long)place] = gettid();
    pthread_barrier_wait(&begun);
    pthread_barrier_wait(&done);
    return NULL;
}

static int open_pidfd(pid_t of, int flags)
{
    int fd = syscall(SYS_pidfd_open, of, flags);
    must(fd >= 0, "pidfd_open");
    return fd;
}

static int has_ended(int fd)
{
    struct pollfd poll_one = {.fd = fd, .events = POLLIN};
    int n = poll(&poll_one, 1, 0);
    must(n >= 0, "poll");
    return n;
}

/* Which of those that the epoll watches have ended. */
static unsigned long events(int epoll)
{
    struct epoll_event found[2 * MOST];
    unsigned long all = 0;
    int n = epoll_wait(epoll, found, 2 * MOST, 0);
    must(n >= 0, "epoll_wait");
    while (n--)
        all |= found[n].data.u64;
    return all;
}

static void watch(int epoll, int fd, unsigned long name, unsigned how)
{
    struct epoll_event event = {.events = EPOLLIN | how, .data.u64 = name};
    must(!epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
}

static void look(int round, const char *what, int fd)
{
    int before = taken;
    errno = 0;
    long sent = syscall(SYS_pidfd_send_signal, fd, SIGUSR1, NULL, 0);
    while (sent == 0 && taken == before)
        usleep(100);
    tell("%d %s: ended %d, sent %ld %s, taken %d, flags %o %d\n", round, what, has_ended(fd), sent,
         errno ? strerrorname_np(errno) : "", taken - before, fcntl(fd, F_GETFL) & (O_NONBLOCK | O_EXCL), fcntl(fd, F_GETFD));
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 200, threads = argc > 2 ? atoi(argv[2]) : 0, of_threads[MOST];
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    must(!sigaction(SIGUSR1, &action, NULL), "sigaction");
    int early = open_pidfd(getpid(), 0), copy = fcntl(early, F_DUPFD_CLOEXEC, 40), plain = dup2(early, 41);
    must(copy == 40 && plain == 41, "dup");
    int epoll = epoll_create1(0), second = dup(epoll);
    watch(epoll, early, 1, 0), watch(epoll, copy, 2, EPOLLET);
    pthread_t made[MOST];
    must(!pthread_barrier_init(&begun, NULL, threads + 1) && !pthread_barrier_init(&done, NULL, threads + 1), "barriers");
    for (long i = 0; i < threads; i++)
        must(!pthread_create(&made[i], NULL, stand, (void *)i), "pthread_create");
    pthread_barrier_wait(&begun);
    for (int i = 0; i < threads; i++) {
        of_threads[i] = open_pidfd(tids[i], PIDFD_FOR_THREAD);
        watch(second, of_threads[i], 0x100 << i, i == 1 ? EPOLLONESHOT : 0);
    }
    for (int round = 0; round < rounds; round++) {
        int late = open_pidfd(getpid(), O_NONBLOCK);
        look(round, "early", early);
        look(round, "copy", copy);
        look(round, "plain", plain);
        look(round, "late", late);
        for (int i = 0; i < threads; i++)
            look(round, "thread", of_threads[i]);
        tell("%d the epoll: %lx\n", round, events(epoll));
        if (round % 50 == 49) {
            struct epoll_event event = {.events = EPOLLIN, .data.u64 = 4};
            must(!epoll_ctl(epoll, EPOLL_CTL_ADD, late, &event) && !epoll_ctl(second, EPOLL_CTL_DEL, late, NULL), "epoll_ctl");
        }
        close(late);
    }
    if (threads) {
        pthread_barrier_wait(&done);
        for (int i = 0; i < threads; i++) {
            must(!pthread_join(made[i], NULL), "pthread_join");
            while (!has_ended(of_threads[i]))
                usleep(1000);
            tell("thread %d has ended\n", i);
        }
        /* By name, each once: one tells of its end once only. */
        unsigned long all = 0, wanted = 0;
        for (int i = 0; i < threads; i++)
            wanted |= 0x100 << i;
        while ((all & wanted) != wanted)
            all |= events(epoll);
        tell("the epoll tells of %lx\n", all);
    }
    return 0;
}
