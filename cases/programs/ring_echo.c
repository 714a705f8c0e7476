/* Passes standard input on to standard output by a ring, in pieces of pseudo-random sizes. */
#include "ring.h"

int main(void)
{
    static char bytes[1 << 16];
    static struct ring ring;
    uint64_t random = 42, total = 0;
    ring_make(&ring, 8, 0);
    for (;;) {
        ring_put(&ring, (struct io_uring_sqe){
            .opcode = IORING_OP_READ, .fd = 0, .addr = (uintptr_t)bytes, .len = 1 + next(&random) % sizeof bytes, .off = -1, .user_data = 1,
        });
        struct completion done = ring_next(&ring);
        must(done.user_data == 1 && done.res >= 0, "read");
        if (!done.res)
            break;
        total += done.res;
        for (int from = 0, len = done.res; from < len; from += done.res) {
            ring_put(&ring, (struct io_uring_sqe){
                .opcode = IORING_OP_WRITE, .fd = 1, .addr = (uintptr_t)bytes + from, .len = len - from, .off = -1, .user_data = 2,
            });
            done = ring_next(&ring);
            must(done.user_data == 2 && done.res > 0, "write");
        }
    }
    dprintf(2, "%lu bytes\n", total);
    return 0;
}
