/* Another root (chroot): rooted ROUNDS. In a mount namespace of its own it makes a folder that has a /proc, makes that its root, and in
 * there another one; its own files have no name in either. Each time it goes on, with memory that lies over a file of the old root. */
#define _GNU_SOURCE
#include "tell.h"
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>

enum { PAGE = 4096 };

static volatile unsigned char *mapped;

static void change_root(const char *path)
{
    char proc[4200];
    snprintf(proc, sizeof proc, "%s/proc", path);
    must(!mkdir(path, 0755), "mkdir");
    must(!mkdir(proc, 0755), "mkdir proc");
    must(!mount("/proc", proc, 0, MS_BIND | MS_REC, 0), "mount");
    tell("%s\n", strrchr(path, '/'));
    must(!chroot(path), "chroot");
    must(!chdir("/"), "chdir");
}

static void go_on(const char *name, int rounds)
{
    for (int round = 0; round < rounds; round++) {
        int fd = open("/file", O_RDWR | O_CREAT, 0644);
        char text[32] = "";
        must(fd >= 0 && pwrite(fd, &round, sizeof round, 0) == sizeof round, "write");
        must(!close(fd), "close");
        must(access("/etc/passwd", F_OK) && !access("/proc/self/stat", F_OK), "what there is");
        must(readlink("/proc/self/root", text, sizeof text) > 0 && !strcmp(text, "/"), "the root");
        must(mapped[0] == 'a' && mapped[PAGE] == (unsigned char)round, "the mapped file");
        mapped[PAGE]++;
        tell("%s %d\n", name, round);
    }
    mapped[PAGE] = 0;
    must(!unlink("/file"), "unlink");
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 100;
    char root[4100];
    must(!unshare(CLONE_NEWNS), "unshare");
    must(!mount("none", "/", 0, MS_REC | MS_PRIVATE, 0), "private");
    int fd = open("mapped", O_RDWR | O_CREAT, 0644);
    must(fd >= 0 && !ftruncate(fd, 2 * PAGE) && pwrite(fd, "a", 1, 0) == 1, "a file");
    mapped = mmap(0, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    must(mapped != MAP_FAILED && !close(fd), "mmap");
    must(getcwd(root, 4090) != NULL, "getcwd");
    strcat(root, "/root");
    change_root(root);
    go_on("first", rounds);
    change_root("/inner");
    go_on("second", rounds);
    return 0;
}
