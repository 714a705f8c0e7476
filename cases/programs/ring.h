/* A ring (io_uring) by raw system calls. */
#pragma once
#include "tell.h"
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>

struct ring {
    int fd;
    struct io_uring_params params;
    char *submissions, *completions;
    struct io_uring_sqe *entries;
    unsigned queued;
};

struct completion {
    uint64_t user_data;
    int res;
    unsigned flags;
};

static inline unsigned *ring_word(char *base, unsigned offset)
{
    return (unsigned *)(base + offset);
}

static inline void ring_make(struct ring *r, unsigned entries, unsigned flags)
{
    memset(r, 0, sizeof *r);
    r->params.flags = flags;
    r->fd = syscall(SYS_io_uring_setup, entries, &r->params);
    must(r->fd >= 0, "io_uring_setup");
    struct io_uring_params *p = &r->params;
    size_t sq = p->sq_off.array + p->sq_entries * 4, cq = p->cq_off.cqes + p->cq_entries * 16;
    must(p->features & IORING_FEAT_SINGLE_MMAP, "IORING_FEAT_SINGLE_MMAP");
    r->submissions = mmap(NULL, sq > cq ? sq : cq, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, IORING_OFF_SQ_RING);
    r->completions = r->submissions;
    r->entries = mmap(NULL, p->sq_entries * 64, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, IORING_OFF_SQES);
    must(r->submissions != MAP_FAILED && r->entries != MAP_FAILED, "map the ring");
}

static inline int ring_enter(struct ring *r, unsigned wanted)
{
    unsigned queued = r->queued;
    r->queued = 0;
    return syscall(SYS_io_uring_enter, r->fd, queued, wanted, wanted ? IORING_ENTER_GETEVENTS : 0, NULL, 0);
}

static inline void ring_put(struct ring *r, struct io_uring_sqe entry)
{
    unsigned *tail = ring_word(r->submissions, r->params.sq_off.tail), mask = *ring_word(r->submissions, r->params.sq_off.ring_mask);
    if (*tail - __atomic_load_n(ring_word(r->submissions, r->params.sq_off.head), __ATOMIC_ACQUIRE) > mask)
        must(ring_enter(r, 0) > 0, "make room in the ring");
    r->entries[*tail & mask] = entry;
    ring_word(r->submissions, r->params.sq_off.array)[*tail & mask] = *tail & mask;
    __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
    r->queued++;
}

/* Takes a completion, if there is one. */
static inline int ring_take(struct ring *r, struct completion *completion)
{
    unsigned *head = ring_word(r->completions, r->params.cq_off.head);
    if (*head == __atomic_load_n(ring_word(r->completions, r->params.cq_off.tail), __ATOMIC_ACQUIRE))
        return 0;
    struct completion *all = (void *)(r->completions + r->params.cq_off.cqes);
    *completion = all[*head & *ring_word(r->completions, r->params.cq_off.ring_mask)];
    __atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
    return 1;
}

/* Submits what is queued, and waits for a completion. */
static inline struct completion ring_next(struct ring *r)
{
    struct completion completion;
    while (!ring_take(r, &completion)) {
        int n = ring_enter(r, 1);
        must(n >= 0 || errno == EINTR, "io_uring_enter");
    }
    return completion;
}
