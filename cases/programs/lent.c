/* Lends a pipe pages (vmsplice) and moves bytes between pipes and a file (splice), over and over: what comes out must be what went
 * in, once. Changes the pages as soon as the bytes are out. */
#define _GNU_SOURCE
#include "tell.h"
#include <fcntl.h>
#include <sys/uio.h>

/* More pages than one, so that a kill finds the kernel between two of them. */
enum { BYTES = 30000 };

static uint64_t take(int fd, int left)
{
    char bytes[BYTES];
    uint64_t sum = 7;
    while (left > 0) {
        ssize_t n = read(fd, bytes, left);
        must(n > 0, "read");
        sum = mix(sum, bytes, n);
        left -= n;
    }
    return sum;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 500, tube[2], file = open("kept", O_CREAT | O_RDWR | O_TRUNC, 0600);
    static char page[BYTES + 100], content[90000];
    must(!pipe(tube) && file >= 0, "pipe");
    for (int i = 0; i < rounds; i++) {
        memset(page, 'a' + i % 26, sizeof page);
        struct iovec lent = { page + i % 100, BYTES };
        must(vmsplice(tube[1], &lent, 1, 0) == BYTES, "vmsplice");
        tell("%d lent %016lx\n", i, take(tube[0], BYTES));
        memset(page, 'A' + i % 26, sizeof page);
        loff_t at = i * 97 % 50000;
        must(write(tube[1], page, BYTES) == BYTES && splice(tube[0], NULL, file, &at, BYTES, 0) == BYTES, "splice out");
        ssize_t n = pread(file, content, sizeof content, 0);
        tell("%d out %zd %016lx\n", i, n, mix(7, content, n));
        at = i * 31 % (n - BYTES + 1);
        must(splice(file, &at, tube[1], NULL, BYTES, 0) == BYTES, "splice in");
        tell("%d in %016lx\n", i, take(tube[0], BYTES));
        struct iovec taken = { page, BYTES };
        must(write(tube[1], content, BYTES) == BYTES && vmsplice(tube[0], &taken, 1, 0) == BYTES, "vmsplice out");
        tell("%d taken %016lx\n", i, mix(7, page, BYTES));
    }
    return 0;
}
