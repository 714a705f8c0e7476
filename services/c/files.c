/* Does the same to files of the file system component and to the kernel's, at random: `files SEED STEPS FOLDER`. Nobody can tell them
 * apart. */
#define _POSIX_C_SOURCE 200809L
#include "fs_client.h"

#include "must.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CREATE = 1, TRUNCATE = 4, APPEND = 8, FOLDER = 16, FILES = 8 };

/* A file here and there; 0: none. */
static struct file {
    unsigned long here;
    int there;
} files[FILES];
static struct fs_client client;
static unsigned long folder;
static int kernels;
static uint64_t state;

static uint64_t chance(uint64_t bound)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (state >> 11) % bound;
}

static void same(const char *what, int alike)
{
    if (!alike) {
        fprintf(stderr, "%s: not the same\n", what);
        exit(1);
    }
}

static void open_one(struct file *file)
{
    const char *name = (const char *[]){ "one", "two", "three" }[chance(3)];
    const int how[] = { 0, CREATE, CREATE | TRUNCATE, CREATE | APPEND }, which = (int)chance(4);
    const int flags = how[which];
    int mode = O_RDWR, error;

    mode |= flags & CREATE ? O_CREAT : 0;
    mode |= flags & TRUNCATE ? O_TRUNC : 0;
    mode |= flags & APPEND ? O_APPEND : 0;
    error = call_fs_split(&client, folder, name, (unsigned int)strlen(name), (unsigned int)flags, NULL, &file->here);
    file->there = openat(kernels, name, mode, 0600);
    same("open", (error == 0) == (file->there >= 0) && (error == 0 || error == errno));
    if (error != 0) {
        file->here = 0;
    }
}

static void write_one(struct file *file)
{
    const unsigned int length = (unsigned int)chance(GLUE_BYTES + 1);
    char data[GLUE_BYTES];
    int count = -1;

    memset(data, (int)chance(256), sizeof data);
    must("write", call_fs_write(&client, file->here, data, length, NULL, &count));
    same("write", count == write(file->there, data, length));
}

static void read_one(struct file *file)
{
    const unsigned int most = (unsigned int)chance(GLUE_BYTES + 1);
    char here[GLUE_BYTES], there[GLUE_BYTES];
    unsigned int got;
    size_t length;
    ssize_t count;

    must("read", call_fs_read(&client, file->here, here, &length, most, &got, NULL));
    count = read(file->there, there, most);
    same("read", count == (ssize_t)length && length == got && memcmp(here, there, length) == 0);
}

static void seek_one(struct file *file)
{
    const int whence = (int)chance(3), how[] = { SEEK_SET, SEEK_CUR, SEEK_END };
    const long to = (long)chance(20000) - 5000;
    long place = -1;
    int error = call_fs_seek(&client, file->here, (unsigned int)whence, to, NULL, &place);
    off_t there = lseek(file->there, to, how[whence]);

    same("seek", error == 0 ? place == there : there < 0 && error == errno);
}

static void step(void)
{
    struct file *file = &files[chance(FILES)];
    unsigned long size;
    struct stat status;

    if (file->here == 0) {
        open_one(file);
        return;
    }
    switch (chance(8)) {
    case 0:
        must("release", call_fs_release(&client, file->here, NULL));
        close(file->there);
        file->here = 0;
        break;
    case 1:
        size = chance(20000);
        must("truncate", call_fs_truncate(&client, file->here, size, NULL));
        same("truncate", ftruncate(file->there, (off_t)size) == 0);
        break;
    case 2:
        must("status", call_fs_status(&client, file->here, &size, NULL, NULL));
        same("status", fstat(file->there, &status) == 0 && (off_t)size == status.st_size);
        break;
    case 3:
        seek_one(file);
        break;
    case 4:
    case 5:
        write_one(file);
        break;
    default:
        read_one(file);
    }
}

int main(int count, char *arguments[])
{
    struct glue_channel *channel = granted("fs");
    unsigned long steps;

    if (count != 4) {
        return 2;
    }
    state = strtoull(arguments[1], NULL, 10) * 0x9e3779b97f4a7c15u | 1;
    steps = strtoul(arguments[2], NULL, 10);
    kernels = open(arguments[3], O_RDONLY | O_DIRECTORY);
    fs_client_open(&client, channel);
    /* Its files are found by their folder, which is recovered before them (D1). */
    must("folder", call_fs_split(&client, 0, "folder", 6, CREATE | FOLDER, NULL, &folder));
    for (unsigned long at = 0; at < steps; at++) {
        step();
    }
    printf("%lu\n", steps);
    fs_client_close(&client);
    glue_channel_close(channel);
    return 0;
}
