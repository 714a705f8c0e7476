/* Threads and rings: one that two threads share, of which one submits and the other waits, in the ring or (epoll) for its descriptor; and
 * one for each of several threads that write files. ring_threads ROUNDS [ring|epoll] */
#define _GNU_SOURCE
#include "ring.h"
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/epoll.h>

enum { WRITERS = 3, RECORD = 64 };

static struct ring shared;
static int rounds, ends[2], queue = -1;
static char taken[256];
static sem_t is_taken;

static void await(void)
{
    if (queue < 0) {
        int n = syscall(SYS_io_uring_enter, shared.fd, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0);
        must(n >= 0 || errno == EINTR, "io_uring_enter");
        return;
    }
    struct epoll_event event;
    int n = epoll_wait(queue, &event, 1, -1);
    must(n == 1 || (n < 0 && errno == EINTR), "epoll_wait");
}

static void *reap(void *unused)
{
    (void)unused;
    for (int i = 0; i < rounds; i++) {
        struct completion done;
        while (!ring_take(&shared, &done))
            await();
        must(done.user_data == (uint64_t)i && done.res > 0, "complete a read");
        taken[done.res] = 0;
        tell("%d %d %s\n", i, done.res, taken);
        must(!sem_post(&is_taken), "sem_post");
    }
    return NULL;
}

static void *write_file(void *number)
{
    struct ring ring;
    char name[32], record[RECORD + 1], again[RECORD];
    long n = (long)number;
    ring_make(&ring, 4, 0);
    snprintf(name, sizeof name, "thread%ld", n);
    int fd = open(name, O_CREAT | O_RDWR | O_TRUNC, 0600);
    must(fd >= 0, "open");
    for (int i = 0; i < rounds; i++) {
        snprintf(record, sizeof record, "%*d\n", RECORD - 1, i * 10 + (int)n);
        ring_put(&ring, (struct io_uring_sqe){
            .opcode = IORING_OP_WRITE, .fd = fd, .addr = (uintptr_t)record, .len = RECORD, .off = i * RECORD, .flags = IOSQE_IO_LINK | IOSQE_CQE_SKIP_SUCCESS,
        });
        ring_put(&ring, (struct io_uring_sqe){
            .opcode = IORING_OP_READ, .fd = fd, .addr = (uintptr_t)again, .len = RECORD, .off = i * RECORD, .user_data = i,
        });
        struct completion done = ring_next(&ring);
        must(done.user_data == (uint64_t)i && done.res == RECORD && !memcmp(record, again, RECORD), "read what was written");
    }
    close(fd);
    close(ring.fd);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t reaper, writers[WRITERS];
    rounds = argc > 1 ? atoi(argv[1]) : 200;
    ring_make(&shared, 8, 0);
    must(!pipe(ends) && !sem_init(&is_taken, 0, 0), "set up");
    if (argc > 2 && !strcmp(argv[2], "epoll")) {
        struct epoll_event event = {.events = EPOLLIN};
        must((queue = epoll_create1(EPOLL_CLOEXEC)) >= 0, "epoll_create1");
        must(!epoll_ctl(queue, EPOLL_CTL_ADD, shared.fd, &event), "epoll_ctl");
    }
    must(!pthread_create(&reaper, NULL, reap, NULL), "pthread_create");
    for (long i = 0; i < WRITERS; i++)
        must(!pthread_create(&writers[i], NULL, write_file, (void *)i), "pthread_create");
    for (int i = 0; i < rounds; i++) {
        ring_put(&shared, (struct io_uring_sqe){
            .opcode = IORING_OP_READ, .fd = ends[0], .addr = (uintptr_t)taken, .len = sizeof taken - 1, .off = -1, .user_data = i,
        });
        must(ring_enter(&shared, 0) == 1, "submit");
        char text[32];
        put_all(ends[1], text, snprintf(text, sizeof text, "message %d", i));
        while (sem_wait(&is_taken))
            must(errno == EINTR, "sem_wait");
    }
    must(!pthread_join(reaper, NULL), "pthread_join");
    for (int i = 0; i < WRITERS; i++)
        must(!pthread_join(writers[i], NULL), "pthread_join");
    tell("done\n");
    return 0;
}
