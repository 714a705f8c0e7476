/* Waits for events that come once, each until its interest is armed anew: in an epoll within an epoll, for pipes, a socket and
 * an event counter. Some share the word that comes with the event, and what was read has often not been shown when the next event
 * comes. An argument "threads" has two workers take the events. */
#define _GNU_SOURCE
#include "tell.h"
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

enum { FILES = 7, COUNTER = FILES - 1 };

static int inner, outer, from[FILES], to[FILES];
static uint64_t state = 99;

static uint64_t word_of(int i)
{
    return i < 2 ? 1000 : 1000 + i;
}

static void change(int how, int i)
{
    struct epoll_event event = { .events = EPOLLIN | EPOLLONESHOT | (i & 1 ? EPOLLET : 0), .data.u64 = word_of(i) };
    must(!epoll_ctl(inner, how, from[i], &event), "epoll_ctl");
}

static void open_all(void)
{
    int pair[2];
    must((inner = epoll_create1(0)) >= 0 && (outer = epoll_create1(0)) >= 0, "epoll_create1");
    for (int i = 0; i < FILES; i++) {
        if (i == COUNTER)
            must((pair[0] = eventfd(0, 0)) >= 0 && (pair[1] = dup(pair[0])) >= 0, "eventfd");
        else if (i == COUNTER - 1)
            must(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair");
        else
            must(!pipe(pair), "pipe");
        from[i] = pair[0], to[i] = pair[1];
        change(EPOLL_CTL_ADD, i);
    }
    struct epoll_event event = { .events = EPOLLIN };
    must(!epoll_ctl(outer, EPOLL_CTL_ADD, inner, &event), "epoll_ctl");
}

static void put(int i, uint64_t value)
{
    must(write(to[i], &value, 8) == 8, "write");
}

static uint64_t get(int i)
{
    uint64_t value;
    must(read(from[i], &value, 8) == 8, "read");
    return value;
}

static int await(int fd, int most, struct epoll_event *events, int time)
{
    int n;
    while ((n = epoll_wait(fd, events, most, time)) < 0)
        must(errno == EINTR, "epoll_wait");
    return n;
}

static void alone(int steps)
{
    uint64_t sum = 0;
    for (int step = 0; step < steps; step++) {
        int i = next(&state) % FILES, times = 1 + next(&state) % 3;
        struct epoll_event events[FILES];
        for (int n = 0; n < (i == COUNTER ? 1 : times); n++)
            put(i, step + 1);
        must(await(outer, 1, events, -1) == 1, "the outer one tells");
        must(await(inner, FILES, events, -1) == 1 && events[0].data.u64 == word_of(i), "the inner one tells");
        must(await(inner, FILES, events, 0) == 0, "it tells once");
        for (int n = 0; n < (i == COUNTER ? 1 : times); n++) {
            sum = sum * 31 + get(i);
            if (n + 1 < times && i != COUNTER && next(&state) % 2) {
                change(EPOLL_CTL_MOD, i);
                must(await(inner, FILES, events, -1) == 1 && events[0].data.u64 == word_of(i), "it tells anew");
            }
        }
        if (next(&state) % 16 == 0) {
            must(!epoll_ctl(inner, EPOLL_CTL_DEL, from[i], NULL), "EPOLL_CTL_DEL");
            change(EPOLL_CTL_ADD, i);
        } else {
            change(EPOLL_CTL_MOD, i);
        }
        if (step % 5 == 0)
            tell("%d %016lx\n", step, sum);
    }
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t taken = PTHREAD_COND_INITIALIZER;
static uint64_t total;
static int count;

static void *work(void *unused)
{
    for (;;) {
        struct epoll_event event;
        must(await(inner, 1, &event, -1) == 1, "epoll_wait");
        int i = event.data.u64 - 1000;
        uint64_t value = get(i);
        must(!pthread_mutex_lock(&lock), "lock");
        total += value * (i + 1);
        count++;
        must(!pthread_cond_signal(&taken) && !pthread_mutex_unlock(&lock), "unlock");
        change(EPOLL_CTL_MOD, i);
    }
    return unused;
}

static void with_workers(int steps)
{
    pthread_t worker;
    must(!pthread_create(&worker, NULL, work, NULL) && !pthread_create(&worker, NULL, work, NULL), "pthread_create");
    for (int step = 0; step < steps; step++) {
        int put_now = 1 + next(&state) % 3;
        for (int n = 0; n < put_now; n++)
            put(2 + (step + n) % 3, step);
        must(!pthread_mutex_lock(&lock), "lock");
        while (count < put_now)
            must(!pthread_cond_wait(&taken, &lock), "wait");
        count = 0;
        tell("%d %lu\n", step, total);
        must(!pthread_mutex_unlock(&lock), "unlock");
    }
}

int main(int argc, char **argv)
{
    int steps = argc > 1 ? atoi(argv[1]) : 1000;
    open_all();
    if (argc > 2)
        with_workers(steps);
    else
        alone(steps);
    tell("the end\n");
    return 0;
}
