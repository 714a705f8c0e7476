/* Makes children in each way there is; each sends its number through a pipe, and is heard once. */
#define _GNU_SOURCE
#include "tell.h"
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>

extern char **environ;
static int line[2];

static void say(int number)
{
    char text[16];
    int len = snprintf(text, sizeof text, "%d\n", number);
    _exit(write(line[1], text, len) != len);
}

static pid_t spawned(int number)
{
    char text[16], end[16];
    char *argv[] = {"sh", "-c", "echo $0 >&$1", text, end, NULL};
    pid_t pid;
    snprintf(text, sizeof text, "%d", number);
    snprintf(end, sizeof end, "%d", line[1]);
    must(!posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ), "posix_spawn");
    return pid;
}

static pid_t cloned(int number, pid_t *told, int three)
{
    struct clone_args args = {.flags = CLONE_PARENT_SETTID, .parent_tid = (uint64_t)told, .exit_signal = SIGCHLD};
    pid_t pid = three ? syscall(SYS_clone3, &args, sizeof args) : -1;
    if (!three || (pid < 0 && errno == ENOSYS))
        pid = syscall(SYS_clone, CLONE_PARENT_SETTID | SIGCHLD, NULL, told, NULL, NULL);
    if (!pid)
        say(number);
    return pid;
}

static pid_t make(int number, pid_t *told)
{
    pid_t pid = -1;
    switch (number % 5) {
    case 0:
        if (!(pid = fork()))
            say(number);
        break;
    case 1:
        if (!(pid = vfork()))
            say(number);
        break;
    case 2:
        return spawned(number);
    case 3:
    case 4:
        pid = cloned(number, told, number % 5 == 4);
        must(*told == pid, "the number of the child, told by the kernel");
        break;
    }
    return pid;
}

int main(int argc, char **argv)
{
    int children = argc > 1 ? atoi(argv[1]) : 100;
    must(!pipe2(line, 0), "pipe2");
    for (int i = 0; i < children; i++) {
        char got[64];
        pid_t told = 0;
        must(make(i, &told) > 0, "a child");
        ssize_t len = read(line[0], got, sizeof got - 1);
        must(len > 0, "read");
        got[len] = 0;
        tell("%s", got);
        while (waitpid(-1, NULL, WNOHANG) > 0)
            continue;
    }
    /* A child too many may come late. */
    struct pollfd late = {.fd = line[0], .events = POLLIN};
    must(poll(&late, 1, 300) == 0, "one child too many");
    return 0;
}
