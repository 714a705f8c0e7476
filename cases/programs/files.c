/* Changes files in every way a rollback has to undo: append, pwrite, overwrite, truncate, rename, unlink, mkdir, links.
 * files ROUNDS: prints a line now and then; what is left in the directory is the result. */
#define _GNU_SOURCE
#include "tell.h"
#include <fcntl.h>
#include <sys/stat.h>

static int open_or_die(const char *name, int flags)
{
    int fd = open(name, flags | O_CLOEXEC, 0644);
    must(fd >= 0, name);
    return fd;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 200;
    uint64_t random = 99;
    int log = open_or_die("log", O_CREAT | O_WRONLY | O_APPEND);
    int table = open_or_die("table", O_CREAT | O_RDWR);
    must(!ftruncate(table, 8192), "ftruncate");
    must(!mkdir("drawer", 0755), "mkdir");
    for (int i = 0; i < rounds; i++) {
        char line[64], name[64], other[64];
        /* Appended by hand and by O_APPEND: a repeated write shows. */
        put_all(log, line, snprintf(line, sizeof line, "%06d\n", i));
        uint64_t cell, at = next(&random) % 1024 * 8;
        must(pread(table, &cell, 8, at) == 8, "pread");
        cell += i;
        must(pwrite(table, &cell, 8, at) == 8, "pwrite");
        snprintf(name, sizeof name, "drawer/note-%d", i % 7);
        int note = open_or_die(name, O_CREAT | O_WRONLY | O_TRUNC);
        put_all(note, line, snprintf(line, sizeof line, "note %d of round %d\n", i % 7, i));
        if (i % 3 == 0)
            must(lseek(note, 100, SEEK_SET) == 100 && write(note, "far", 3) == 3, "write after a seek");
        must(!close(note), "close");
        if (i % 5 == 0) {
            snprintf(other, sizeof other, "drawer/moved-%d", i % 4);
            must(!rename(name, other), "rename");
        }
        if (i % 11 == 0) {
            snprintf(other, sizeof other, "drawer/moved-%d", i % 4);
            must(!unlink(other) || errno == ENOENT, "unlink");
        }
        if (i % 13 == 0)
            must(!truncate("log", 7 * (i / 2)) && lseek(log, 0, SEEK_END) == 7 * (i / 2), "truncate");
        if (i % 17 == 0) {
            (void)unlink("link");
            must(!symlink(name, "link"), "symlink");
            must(!mkdir("passing", 0700) && !rmdir("passing"), "mkdir and rmdir");
            must(!chmod("table", i % 2 ? 0600 : 0640), "chmod");
        }
        if (i % 4 == 0)
            tell("%d\n", i);
    }
    return 0;
}
