/* Binds itself to a ruleset of Landlock, and prints again and again what it may open: landlock ROUNDS [threads]. With threads, from the
 * second ruleset on, by one after the other, which have it from the first. */
#define _GNU_SOURCE
#include "tell.h"
#include <fcntl.h>
#include <linux/landlock.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static void show(int i, const char *path, int flags)
{
    errno = 0;
    int fd = open(path, flags, 0600);
    tell("%d %s %s\n", i, path, fd < 0 ? strerrorname_np(errno) : "open");
    if (fd >= 0)
        close(fd);
}

static void restrict_to(__u64 handled, const char *path, __u64 allowed)
{
    struct landlock_ruleset_attr attributes = {.handled_access_fs = handled};
    int ruleset = syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0);
    must(ruleset >= 0, "landlock_create_ruleset");
    struct landlock_path_beneath_attr beneath = {.allowed_access = allowed, .parent_fd = open(path, O_PATH | O_CLOEXEC)};
    must(!syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0), "landlock_add_rule");
    must(!syscall(SYS_landlock_restrict_self, ruleset, 0), "landlock_restrict_self");
    close(beneath.parent_fd);
    close(ruleset);
}

static void *show_all(void *round)
{
    int i = (long)round;
    show(i, "/dev/null", O_WRONLY);
    show(i, "written", O_WRONLY | O_CREAT);
    show(i, "/etc", O_RDONLY | O_DIRECTORY);
    show(i, "/proc/self", O_RDONLY | O_DIRECTORY);
    return round;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 300;
    must(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs");
    for (int i = 0; i < rounds; i++) {
        if (i == rounds / 4)
            restrict_to(LANDLOCK_ACCESS_FS_WRITE_FILE, "/dev", LANDLOCK_ACCESS_FS_WRITE_FILE);
        if (i == rounds / 2)
            restrict_to(LANDLOCK_ACCESS_FS_READ_DIR, "/proc", LANDLOCK_ACCESS_FS_READ_DIR);
        pthread_t thread;
        if (argc < 3 || i < rounds / 2)
            show_all((void *)(long)i);
        else
            must(!pthread_create(&thread, NULL, show_all, (void *)(long)i) && !pthread_join(thread, NULL), "a thread");
    }
    return 0;
}
