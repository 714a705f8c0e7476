/* Writes to a file without a name, cuts it off, makes holes and appends, and prints what is in it.
 * own_calls STEPS memfd|tmpfile|transfers [FILE]; prints to the file; transfers: the kernel moves bytes there, too */
#define _GNU_SOURCE
#include "tell.h"
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <sys/sendfile.h>

enum { MOST = 200000 };

int main(int argc, char **argv)
{
    int steps = argc > 1 ? atoi(argv[1]) : 1000;
    int transfers = argc > 2 && !strcmp(argv[2], "transfers"), from = -1;
    int is_tmpfile = argc > 2 && !strcmp(argv[2], "tmpfile");
    if (argc > 3)
        must(dup2(open(argv[3], O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600), 1) == 1, argv[3]);
    int fd = is_tmpfile ? open(".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) : memfd_create("own", MFD_CLOEXEC);
    must(fd >= 0, "make a file");
    if (transfers) {
        from = open("source", O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0600);
        for (int i = 0; i < 20000; i++)
            must(pwrite(from, &i, 1, i) == 1, "write the source");
    }
    uint64_t random = 88172645463325252;
    static unsigned char all[2 * MOST];
    for (int step = 1; step <= steps; step++) {
        uint64_t r = next(&random);
        char bytes[9000];
        size_t len = 1 + (r >> 8) % sizeof bytes;
        off_t at = (r >> 32) % MOST;
        memset(bytes, r >> 24, sizeof bytes);
        switch (transfers && step > steps / 2 ? 6 + r % 2 : r % 6) {
        case 6: {
            off_t source = at % 10000;
            must(sendfile(fd, from, &source, len) == (ssize_t)len, "sendfile");
            break;
        }
        case 7: {
            off_t source = at % 10000;
            must(copy_file_range(from, &source, fd, &at, len, 0) == (ssize_t)len || errno == EXDEV, "copy_file_range");
            break;
        }
        case 0:
            must(pwrite(fd, bytes, len, at) == (ssize_t)len, "pwrite");
            break;
        case 1:
            must(!ftruncate(fd, at), "ftruncate");
            break;
        case 2:
            must(!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, len) || errno == EOPNOTSUPP, "fallocate");
            break;
        case 3:
            must(lseek(fd, at, SEEK_SET) == at, "lseek");
            break;
        default:
            must(write(fd, bytes, len) == (ssize_t)len, "write");
        }
        ssize_t n = pread(fd, all, sizeof all, 0);
        must(n >= 0, "pread");
        tell("%d %zd %lld %016lx\n", step, n, (long long)lseek(fd, 0, SEEK_CUR), mix(0xcbf29ce484222325, all, n));
        if (lseek(fd, 0, SEEK_CUR) > MOST)
            must(!lseek(fd, 0, SEEK_SET), "lseek back");
    }
    return 0;
}
