/* Writes records to a file: through an io_uring of its own where it can have one, as most programs do that can do without. */
#define _GNU_SOURCE
#include "tell.h"
#include <fcntl.h>
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>

static struct io_uring_params params;
static struct io_uring_sqe *entries;
static char *submissions, *completions;
static int ring;

static int set_up(void)
{
    ring = syscall(SYS_io_uring_setup, 8, &params);
    if (ring < 0)
        return 0;
    size_t lens[2] = { params.sq_off.array + params.sq_entries * 4, params.cq_off.cqes + params.cq_entries * 16 };
    submissions = mmap(NULL, lens[0], PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
    completions = mmap(NULL, lens[1], PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_CQ_RING);
    entries = mmap(NULL, params.sq_entries * 64, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
    must(submissions != MAP_FAILED && completions != MAP_FAILED && entries != MAP_FAILED, "map the ring");
    return 1;
}

static unsigned *word(char *base, unsigned offset)
{
    return (unsigned *)(base + offset);
}

static long write_by_ring(int fd, const char *bytes, unsigned len, long at)
{
    unsigned *tail = word(submissions, params.sq_off.tail), slot = *tail & *word(submissions, params.sq_off.ring_mask);
    entries[slot] = (struct io_uring_sqe){
        .opcode = IORING_OP_WRITE, .fd = fd, .addr = (uintptr_t)bytes, .len = len, .off = at, .user_data = at,
    };
    word(submissions, params.sq_off.array)[slot] = slot;
    __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
    must(syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) == 1, "io_uring_enter");
    unsigned *head = word(completions, params.cq_off.head);
    struct io_uring_cqe *all = (void *)(completions + params.cq_off.cqes);
    struct io_uring_cqe *done = &all[*head & *word(completions, params.cq_off.ring_mask)];
    must(done->user_data == (uint64_t)at, "the entry completes");
    long result = done->res;
    __atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
    return result;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 500, fd = open("records", O_CREAT | O_RDWR | O_TRUNC, 0600);
    int has_ring = set_up();
    for (int i = 0; i < rounds; i++) {
        char record[16];
        int len = snprintf(record, sizeof record, "%08d\n", i);
        long n = has_ring ? write_by_ring(fd, record, len, (long)i * len) : pwrite(fd, record, len, (long)i * len);
        tell("%d %ld\n", i, n);
    }
    return 0;
}
