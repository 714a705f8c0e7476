/* Changes files in every way and knows what each must hold: a program that is taken back finds them as they were.
 * undo ROUNDS: shows nothing but what is left in the directory. */
#define _GNU_SOURCE
#include "tell.h"
#include <dirent.h>
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>

enum { NAMES = 8, MOST = 24000 };

struct file {
    int there;
    size_t len;
    unsigned char bytes[MOST];
};

static struct file files[NAMES], standing[2];
static const char *const names[NAMES] = { "a", "b", "c", "drawer/a", "drawer/b", "drawer/c", "drawer/d", "e" };
static int standing_fd[2];
static uint64_t state = 4711;

static unsigned pick(unsigned n)
{
    return next(&state) % n;
}

static void fill(unsigned char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        bytes[i] = 'a' + next(&state) % 26;
}

/* Is in the file what must be there? */
static void check(const char *name, const struct file *f)
{
    static unsigned char found[MOST + 1];
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (!f->there) {
        must(fd < 0 && errno == ENOENT, name);
        return;
    }
    must(fd >= 0, name);
    ssize_t n = read(fd, found, sizeof found);
    if (n != (ssize_t)f->len || memcmp(found, f->bytes, f->len)) {
        dprintf(2, "%s holds %zd bytes, not the %zu that were written\n", name, n, f->len);
        _exit(2);
    }
    must(!close(fd), "close");
}

static void change_content(int fd, struct file *f, int appends)
{
    static unsigned char bytes[4000];
    size_t len = 1 + pick(sizeof bytes), at = pick(f->len + 1);
    fill(bytes, len);
    switch (pick(6)) {
    case 0:
    case 1:
        if (appends || pick(2)) {
            at = f->len;
            must(lseek(fd, 0, SEEK_END) == (off_t)at, "lseek");
        } else {
            must(lseek(fd, at, SEEK_SET) == (off_t)at, "lseek");
        }
        if (at + len > MOST)
            return;
        must(write(fd, bytes, len) == (ssize_t)len, "write");
        break;
    case 2: {
        if (appends)
            at = f->len;
        if (at + len > MOST)
            return;
        struct iovec parts[2] = { { bytes, len / 2 }, { bytes + len / 2, len - len / 2 } };
        must(pwritev(fd, parts, 2, at) == (ssize_t)len, "pwritev");
        break;
    }
    case 3:
        len = pick(MOST);
        must(!ftruncate(fd, len), "ftruncate");
        if (len > f->len)
            memset(f->bytes + f->len, 0, len - f->len);
        f->len = len;
        return;
    case 4:
        len = pick(f->len + 1 - at);
        if (!len)
            return;
        must(!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, len), "fallocate");
        memset(f->bytes + at, 0, len);
        return;
    default: {
        /* From one of the files that are always open. */
        struct file *from = &standing[0];
        if (appends || f == from || !from->len || f->len + from->len > MOST)
            return;
        off_t start = 0;
        must(lseek(fd, 0, SEEK_END) == (off_t)f->len, "lseek");
        must(sendfile(fd, standing_fd[0], &start, from->len) == (ssize_t)from->len, "sendfile");
        memcpy(f->bytes + f->len, from->bytes, from->len);
        f->len += from->len;
        return;
    }
    }
    memcpy(f->bytes + at, bytes, len);
    if (at + len > f->len)
        f->len = at + len;
}

static void change_one(unsigned i)
{
    struct file *f = &files[i];
    unsigned other = pick(NAMES);
    int fd;
    switch (pick(9)) {
    case 0:
        fd = open(names[i], O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
        must(f->there ? fd < 0 && errno == EEXIST : fd >= 0, "exclusive creation");
        if (fd >= 0) {
            f->there = 1;
            f->len = 0;
            change_content(fd, f, 0);
            must(!close(fd), "close");
        }
        break;
    case 1:
        fd = open(names[i], O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0644);
        must(fd >= 0, "open and truncate");
        f->there = 1;
        f->len = 0;
        change_content(fd, f, 0);
        must(!close(fd), "close");
        break;
    case 2:
    case 3:
        fd = open(names[i], O_WRONLY | O_APPEND | O_CLOEXEC);
        must(f->there ? fd >= 0 : fd < 0 && errno == ENOENT, "open to append");
        if (fd >= 0) {
            change_content(fd, f, 1);
            must(!close(fd), "close");
        }
        break;
    case 4:
        must(f->there ? !unlink(names[i]) : unlink(names[i]) < 0 && errno == ENOENT, "unlink");
        f->there = 0;
        break;
    case 5:
        if (f->there) {
            must(!rename(names[i], names[other]), "rename");
            if (i != other) {
                files[other] = *f;
                f->there = 0;
            }
        } else {
            must(rename(names[i], names[other]) < 0 && errno == ENOENT, "rename of nothing");
        }
        break;
    case 6:
        if (f->there && files[other].there) {
            static struct file kept;
            must(!renameat2(AT_FDCWD, names[i], AT_FDCWD, names[other], RENAME_EXCHANGE), "exchange");
            kept = files[other];
            files[other] = *f;
            *f = kept;
        }
        break;
    case 7:
        if (f->there && f->len) {
            f->len /= 2;
            must(!truncate(names[i], f->len), "truncate");
        }
        break;
    default:
        if (f->there && !files[other].there && !pick(3)) {
            /* Two names of one file for a moment. */
            must(!link(names[i], names[other]), "link");
            must(!unlink(names[i]), "unlink of one name");
            files[other] = *f;
            f->there = 0;
        }
    }
}

static void change_folders(int round)
{
    struct stat st;
    must(!mkdir("passing", 0750), "mkdir");
    must(!symlink("nowhere", "passing/link") && !mkfifo("passing/fifo", 0600), "symlink, mkfifo");
    int fd = open("passing/file", O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    must(fd >= 0, "creation in a folder");
    put_all(fd, "passing\n", 8);
    must(!close(fd), "close");
    must(rename("passing", round % 2 ? "passed" : "gone") == 0, "rename of a folder");
    must(!chdir(round % 2 ? "passed" : "gone"), "chdir");
    int seen = 0;
    DIR *here = opendir(".");
    must(here != NULL, "opendir");
    for (struct dirent *entry; (entry = readdir(here));)
        seen += entry->d_name[0] != '.' || entry->d_name[1] == 'o';
    must(seen == 3 && !closedir(here), "three names in the folder");
    must(!unlink("file") && !unlink("link") && !unlink("fifo"), "unlink all");
    here = opendir(".");
    must(here != NULL, "opendir");
    for (struct dirent *entry; (entry = readdir(here));)
        must(!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."), "no name is left");
    must(!closedir(here) && !chdir(".."), "closedir, chdir");
    must(!rmdir(round % 2 ? "passed" : "gone"), "rmdir");
    must(stat("passing", &st) < 0 && errno == ENOENT, "the folder is gone");
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 2000;
    must(!mkdir("drawer", 0755), "mkdir");
    for (int i = 0; i < 2; i++) {
        int flags = O_CREAT | O_EXCL | O_CLOEXEC | (i ? O_WRONLY | O_APPEND : O_RDWR);
        standing_fd[i] = open(i ? "log" : "table", flags, 0644);
        must(standing_fd[i] >= 0, "the standing files");
        standing[i].there = 1;
    }
    for (int round = 0; round < rounds; round++) {
        change_one(pick(NAMES));
        unsigned which = pick(2);
        change_content(standing_fd[which], &standing[which], which);
        if (round % 16 == 0)
            change_folders(round);
        unsigned seen = pick(NAMES);
        check(names[seen], &files[seen]);
        check("table", &standing[0]);
        check("log", &standing[1]);
    }
    for (int i = 0; i < NAMES; i++)
        check(names[i], &files[i]);
    return 0;
}
