/* Files changed by a ring's entries, alone and in chains: names, records with registered files and buffers; and times, polls,
 * cancellations, unless there is a second argument. ring_files ROUNDS [files] */
#define _GNU_SOURCE
#include "ring.h"
#include <fcntl.h>
#include <linux/time_types.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/uio.h>

static struct ring ring;
static char buffers[2][4096];

/* Takes `n` completions, which may come in any order, and tells of them in the order of their numbers. */
static void tell_of(int n, const char *what)
{
    int results[16] = {0};
    for (int i = 0; i < n; i++) {
        struct completion done = ring_next(&ring);
        must(done.user_data < 16, "the number of an entry");
        results[done.user_data] = done.res;
    }
    char line[256];
    int len = snprintf(line, sizeof line, "%s", what);
    for (int i = 0; i < n; i++)
        len += snprintf(line + len, sizeof line - len, " %d", results[i]);
    tell("%s\n", line);
}

static struct io_uring_sqe entry(int opcode, int fd, const void *at, unsigned len, uint64_t off, int number, int flags)
{
    return (struct io_uring_sqe){
        .opcode = opcode, .fd = fd, .addr = (uintptr_t)at, .len = len, .off = off, .user_data = number, .flags = flags,
    };
}

/* A file is made, written, moved and looked at. */
static void names(int i)
{
    char name[32], moved[32];
    snprintf(name, sizeof name, "file%d", i);
    snprintf(moved, sizeof moved, "folder/file%d", i);
    struct io_uring_sqe open = entry(IORING_OP_OPENAT, AT_FDCWD, name, 0600, 0, 0, 0);
    open.open_flags = O_CREAT | O_RDWR | O_EXCL;
    ring_put(&ring, open);
    struct completion opened = ring_next(&ring);
    must(opened.res >= 0, "open a file by the ring");
    int len = snprintf(buffers[0], sizeof buffers[0], "record %d\n", i);
    ring_put(&ring, entry(IORING_OP_WRITE, opened.res, buffers[0], len, -1, 0, IOSQE_IO_LINK));
    ring_put(&ring, entry(IORING_OP_FSYNC, opened.res, NULL, 0, 0, 1, IOSQE_IO_LINK));
    struct io_uring_sqe rename = entry(IORING_OP_RENAMEAT, AT_FDCWD, name, AT_FDCWD, (uintptr_t)moved, 3, 0);
    /* By the name that it has when it is open it is found again by whoever resumes the program from the store alone. */
    ring_put(&ring, entry(IORING_OP_CLOSE, opened.res, NULL, 0, 0, 2, IOSQE_IO_LINK));
    ring_put(&ring, rename);
    tell_of(4, "written");
    struct statx found = {0};
    struct io_uring_sqe look = entry(IORING_OP_STATX, AT_FDCWD, moved, STATX_SIZE, (uintptr_t)&found, 0, 0);
    ring_put(&ring, look);
    tell_of(1, "looked");
    tell("%s %llu\n", moved, found.stx_size);
    if (i % 3 == 0) {
        /* One after the other: the kernel would make both at the same time. */
        ring_put(&ring, entry(IORING_OP_UNLINKAT, AT_FDCWD, moved, 0, 0, 0, IOSQE_IO_HARDLINK));
        ring_put(&ring, entry(IORING_OP_UNLINKAT, AT_FDCWD, moved, 0, 0, 1, 0));
        tell_of(2, "removed");
    }
}

/* Records of registered file 0, written and read again by registered buffers. */
static void records(int i)
{
    memset(buffers[0], 'a' + i % 26, 1000);
    struct io_uring_sqe write = entry(IORING_OP_WRITE_FIXED, 0, buffers[0], 1000, i * 1000L, 0, IOSQE_FIXED_FILE | IOSQE_IO_LINK);
    struct io_uring_sqe read = entry(IORING_OP_READ_FIXED, 0, buffers[1], 1000, i * 1000L, 1, IOSQE_FIXED_FILE | IOSQE_IO_LINK);
    read.buf_index = 1;
    ring_put(&ring, write);
    ring_put(&ring, read);
    /* Nothing is there: the chain ends, and what follows is cancelled. */
    ring_put(&ring, entry(IORING_OP_READ, 0, buffers[1] + 2000, 100, 1L << 40, 2, IOSQE_FIXED_FILE | IOSQE_IO_LINK));
    ring_put(&ring, entry(IORING_OP_NOP, -1, NULL, 0, 0, 3, 0));
    tell_of(4, "records");
    must(!memcmp(buffers[0], buffers[1], 1000), "what is read is what was written");
}

/* A poll and a time wait; one is called off, the other's time comes. */
static void waits(int i)
{
    int ends[2];
    must(!pipe(ends), "pipe");
    struct __kernel_timespec long_time = {.tv_sec = 1000}, short_time = {.tv_nsec = 200000};
    ring_put(&ring, entry(IORING_OP_TIMEOUT, -1, &long_time, 1, 0, 3, 0));
    struct io_uring_sqe poll = entry(IORING_OP_POLL_ADD, ends[0], NULL, 0, 0, 0, 0);
    poll.poll32_events = POLLIN;
    ring_put(&ring, poll);
    ring_put(&ring, entry(IORING_OP_READ, ends[0], buffers[1], 100, -1, 1, IOSQE_IO_LINK));
    ring_put(&ring, entry(IORING_OP_LINK_TIMEOUT, -1, &short_time, 1, 0, 2, 0));
    /* The read is cut short by its time. */
    struct completion done[2] = {ring_next(&ring), ring_next(&ring)};
    int first = done[0].user_data == 2;
    tell("cut short %d %d\n", done[first].res, done[!first].res);
    ring_put(&ring, entry(IORING_OP_WRITE, ends[1], "x", 1, -1, 1, 0));
    ring_put(&ring, entry(IORING_OP_TIMEOUT_REMOVE, -1, (void *)3, 0, 0, 2, 0));
    tell_of(4, "waited");
    ring_put(&ring, entry(IORING_OP_READ, ends[0], buffers[1], 1, -1, 0, i % 2 ? IOSQE_ASYNC : 0));
    tell_of(1, "read");
    struct io_uring_sqe drained = entry(IORING_OP_NOP, -1, NULL, 0, 0, 2, IOSQE_IO_DRAIN);
    ring_put(&ring, entry(IORING_OP_READ, ends[0], buffers[1], 1, -1, 0, 0));
    ring_put(&ring, entry(IORING_OP_ASYNC_CANCEL, -1, (void *)0, 0, 0, 1, 0));
    ring_put(&ring, drained);
    tell_of(3, "called off");
    close(ends[0]);
    close(ends[1]);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 100;
    ring_make(&ring, 8, 0);
    must(!mkdir("folder", 0700), "mkdir");
    int fd = open("records", O_CREAT | O_RDWR | O_TRUNC, 0600);
    must(fd >= 0, "open");
    struct iovec known[2] = {{buffers[0], sizeof buffers[0]}, {buffers[1], sizeof buffers[1]}};
    must(!syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_BUFFERS, known, 2), "register buffers");
    must(!syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_FILES, &fd, 1), "register files");
    /* It stays, being registered. */
    must(!close(fd), "close");
    for (int i = 0; i < rounds; i++) {
        names(i);
        records(i);
        if (argc < 3)
            waits(i);
    }
    must(!syscall(SYS_io_uring_register, ring.fd, IORING_UNREGISTER_FILES, NULL, 0), "unregister files");
    must(!close(ring.fd), "close the ring");
    tell("done\n");
    return 0;
}
