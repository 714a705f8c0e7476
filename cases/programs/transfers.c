/* Calls on files that programs seldom make, each followed by what it left: writes at and beside the offset, appends, bytes
 * that go from one descriptor to another, locks, times and names.
 * transfers ROUNDS [splice]: with bytes that go through a pipe by splice, too. */
#define _GNU_SOURCE
#include "tell.h"
#include <fcntl.h>
#include <sys/file.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <sys/ioctl.h>

static uint64_t sum_of(int fd)
{
    char bytes[65536];
    uint64_t sum = 0xcbf29ce484222325;
    off_t at = 0;
    for (ssize_t n; (n = pread(fd, bytes, sizeof bytes, at)) > 0; at += n)
        sum = mix(sum, bytes, n);
    return sum;
}
static void state(int round, const char *what, int fd)
{
    struct stat st;
    must(!fstat(fd, &st), "fstat");
    tell("%d %s: size %ld at %ld sum %016lx mode %o links %ld\n", round, what, (long)st.st_size,
         (long)lseek(fd, 0, SEEK_CUR), (unsigned long)sum_of(fd), st.st_mode & 07777, (long)st.st_nlink);
}
int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 50;
    char text[4096];
    uint64_t random = 77;
    for (unsigned i = 0; i < sizeof text; i++) text[i] = 'a' + next(&random) % 26;
    int source = open("source", O_CREAT | O_RDWR | O_TRUNC, 0644);
    for (int i = 0; i < 20; i++) put_all(source, text, sizeof text);
    for (int round = 0; round < rounds; round++) {
        int fd = open("target", O_CREAT | O_RDWR | O_TRUNC | O_CLOEXEC, 0640), one, two, tube[2];
        struct iovec v[2] = {{text, 100}, {text + 50, 60}};
        must(pwritev2(fd, v, 2, -1, 0) == 160, "pwritev2 at the offset");
        state(round, "pwritev2", fd);
        must(pwritev2(fd, v, 2, 10, RWF_DSYNC) == 160, "pwritev2");
        must(pwritev2(fd, v, 1, 0, RWF_APPEND) == 100, "pwritev2 append");
        state(round, "append", fd);
        must(pwritev2(fd, v, 1, -1, RWF_APPEND) == 100, "pwritev2 append at the offset");
        state(round, "append at the offset", fd);
        must(!fcntl(fd, F_SETFL, O_APPEND), "F_SETFL");
        must(pwrite(fd, text, 70, 5) == 70 && pwritev(fd, v, 2, 9) == 160, "pwrite with O_APPEND");
        state(round, "append by pwrite", fd);
        must(lseek(fd, 30, SEEK_SET) == 30 && !fcntl(fd, F_SETFL, 0), "lseek");
        char got[200];
        struct iovec w = {got, 50};
        lseek(fd, 0, SEEK_SET);
        must(preadv2(fd, &w, 1, -1, 0) == 50, "preadv2");
        state(round, "preadv2", fd);
        loff_t from = 100, to = 5000;
        ssize_t n = copy_file_range(source, &from, fd, &to, 3000, 0);
        tell("%d copy_file_range %zd %ld %ld\n", round, n, (long)from, (long)to);
        lseek(source, 777, SEEK_SET);
        lseek(fd, 0, SEEK_END);
        n = copy_file_range(source, NULL, fd, NULL, 1000, 0);
        tell("%d copy_file_range %zd at %ld\n", round, n, (long)lseek(source, 0, SEEK_CUR));
        state(round, "copied", fd);
        off_t begin = 20;
        n = sendfile(fd, source, &begin, 2000);
        tell("%d sendfile %zd %ld\n", round, n, (long)begin);
        n = sendfile(fd, source, NULL, 2000);
        tell("%d sendfile %zd at %ld\n", round, n, (long)lseek(source, 0, SEEK_CUR));
        state(round, "sent", fd);
        must(!pipe2(tube, O_CLOEXEC), "pipe2");
        if (argc > 2) {
            n = splice(source, NULL, tube[1], NULL, 3000, 0);
            tell("%d splice in %zd at %ld\n", round, n, (long)lseek(source, 0, SEEK_CUR));
            int waiting = 0;
            ioctl(tube[0], FIONREAD, &waiting);
            tell("%d waiting %d\n", round, waiting);
            n = splice(tube[0], NULL, fd, NULL, 3000, 0);
            tell("%d splice out %zd\n", round, n);
            state(round, "spliced", fd);
        }
        struct iovec lent = {text + 7, 500};
        n = vmsplice(tube[1], &lent, 1, 0);
        int other[2];
        must(!pipe2(other, O_CLOEXEC), "pipe2");
        ssize_t m = tee(tube[0], other[1], 500, 0);
        tell("%d vmsplice %zd tee %zd\n", round, n, m);
        must(read(tube[0], got, 100) == 100 && read(other[0], got + 100, 100) == 100, "read");
        tell("%d same %d\n", round, !memcmp(got, got + 100, 100) && !memcmp(got, text + 7, 100));
        close(tube[0]), close(tube[1]), close(other[0]), close(other[1]);
        must(!fallocate(fd, 0, 20000, 5000), "fallocate");
        must(!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), "punch");
        state(round, "fallocate", fd);
        must(!ftruncate(fd, 12345), "ftruncate");
        state(round, "ftruncate", fd);
        one = open("both", O_CREAT | O_WRONLY | O_APPEND | O_TRUNC, 0600), two = open("both", O_WRONLY | O_APPEND);
        for (int i = 0; i < 6; i++)
            must(dprintf(i & 1 ? two : one, "%d.%d\n", round, i) > 0, "append");
        int both = open("both", O_RDONLY);
        state(round, "two appenders", both);
        must(!fchmod(fd, 0600 + round % 8), "fchmod");
        if (fsetxattr(fd, "user.round", &round, sizeof round, 0) && errno != EOPNOTSUPP) must(0, "fsetxattr");
        int value = -1;
        n = fgetxattr(fd, "user.round", &value, sizeof value);
        tell("%d xattr %zd %d\n", round, n, value);
        if (n > 0) tell("%d removed %d again %d\n", round, fremovexattr(fd, "user.round"), fremovexattr(fd, "user.round"));
        struct timespec times[2] = {{1000 + round, 5}, {2000 + round, 7}};
        must(!futimens(fd, times), "futimens");
        struct stat st;
        must(!fstat(fd, &st), "fstat");
        tell("%d times %ld %ld\n", round, (long)st.st_atime, (long)st.st_mtime);
        must(!link("target", "second"), "link");
        state(round, "linked", fd);
        must(!rename("second", "third"), "rename");
        tell("%d second %d third %d\n", round, access("second", F_OK), access("third", F_OK));
        must(!unlink("target"), "unlink");
        state(round, "one name less", fd);
        must(!unlink("third"), "unlink");
        state(round, "no name", fd);
        put_all(fd, text, 100);
        state(round, "written without a name", fd);
        must(!mkdir("dir", 0700) && !symlink("nowhere", "dir/link") && !mkdirat(AT_FDCWD, "dir/sub", 0750), "mkdir");
        n = readlink("dir/link", got, sizeof got);
        tell("%d link %.*s\n", round, (int)n, got);
        must(!chdir("dir") && !chdir(".."), "chdir");
        int folder = open("dir", O_RDONLY | O_DIRECTORY);
        must(!unlinkat(folder, "link", 0) && !unlinkat(folder, "sub", AT_REMOVEDIR) && !rmdir("dir"), "remove");
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = round, .l_len = 5};
        must(!fcntl(both, F_SETLK, &(struct flock){.l_type = F_RDLCK, .l_len = 3}), "F_SETLK");
        must(!fcntl(fd, F_OFD_SETLK, &lock), "F_OFD_SETLK");
        must(!flock(source, round & 1 ? LOCK_EX : LOCK_SH), "flock");
        tell("%d numbers %d %d %d %d %d\n", round, fd, one, two, both, folder);
        close(fd), close(one), close(two), close(both), close(folder);
        must(!syncfs(source), "syncfs");
    }
    return 0;
}
