/* Writes and reads a file by asynchronous requests (io_submit), several at once, past the page cache where the file system can.
 * Takes completions late, from the ring itself, too, as libaio does, and from two contexts. */
#define _GNU_SOURCE
#include "tell.h"
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <sys/syscall.h>

enum { BLOCK = 4096, AT_ONCE = 4, BLOCKS = 16 };

struct ring {
    unsigned id, size, head, tail, magic, features[2], head_len;
    struct io_event events[];
};

static unsigned char *written, *got;
static int fd;

static void submit(aio_context_t context, int operation, unsigned char *bytes, int block, int count)
{
    struct iocb requests[AT_ONCE], *list[AT_ONCE];
    for (int i = 0; i < count; i++) {
        requests[i] = (struct iocb){
            .aio_fildes = fd,
            .aio_lio_opcode = operation,
            .aio_buf = (uintptr_t)(bytes + i * BLOCK),
            .aio_nbytes = BLOCK,
            .aio_offset = (block + i) % BLOCKS * BLOCK,
            .aio_data = 100 + block + i,
        };
        list[i] = &requests[i];
    }
    must(syscall(SYS_io_submit, context, count, list) == count, "io_submit");
}

static uint64_t take(aio_context_t context, int count)
{
    struct io_event events[AT_ONCE];
    uint64_t sum = 0;
    for (int n = 0; n < count; n++) {
        must(syscall(SYS_io_getevents, context, 1, 1, events, NULL) == 1, "io_getevents");
        sum += events[0].data * 10000 + events[0].res;
    }
    return sum;
}

static uint64_t take_from_ring(aio_context_t context, int count)
{
    struct ring *ring = (struct ring *)context;
    uint64_t sum = 0;
    while (count--) {
        while (__atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE) == ring->head)
            usleep(50);
        struct io_event *event = &ring->events[ring->head];
        sum += event->data * 10000 + event->res;
        __atomic_store_n(&ring->head, (ring->head + 1) % ring->size, __ATOMIC_RELEASE);
    }
    return sum;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 300;
    aio_context_t one = 0, two = 0;
    fd = open("blocks", O_CREAT | O_RDWR | O_TRUNC | O_DIRECT, 0600);
    if (fd < 0)
        fd = open("blocks", O_CREAT | O_RDWR | O_TRUNC, 0600);
    must(fd >= 0 && !ftruncate(fd, BLOCKS * BLOCK), "open");
    must(!posix_memalign((void **)&written, BLOCK, AT_ONCE * BLOCK) && !posix_memalign((void **)&got, BLOCK, AT_ONCE * BLOCK),
         "posix_memalign");
    must(!syscall(SYS_io_setup, 32, &one) && !syscall(SYS_io_setup, 8, &two), "io_setup");
    for (int i = 0; i < rounds; i++) {
        memset(written, 'a' + i % 26, AT_ONCE * BLOCK);
        written[i % BLOCK] = i;
        submit(one, IOCB_CMD_PWRITE, written, i, AT_ONCE);
        uint64_t sum = take(one, AT_ONCE - 2);
        tell("%d half\n", i);
        sum += i % 2 ? take(one, 2) : take_from_ring(one, 2);
        memset(got, 0, AT_ONCE * BLOCK);
        submit(two, IOCB_CMD_PREAD, got, i * 7, AT_ONCE);
        tell("%d %lu %016lx\n", i, sum, mix(1, got, AT_ONCE * BLOCK));
        tell("%d %lu\n", i, take(two, AT_ONCE));
        if (i % 40 == 39) {
            must(!syscall(SYS_io_destroy, two), "io_destroy");
            two = 0;
            must(!syscall(SYS_io_setup, 8 + i, &two), "io_setup");
        }
    }
    must(!syscall(SYS_io_destroy, one) && !syscall(SYS_io_destroy, two), "io_destroy");
    return 0;
}
