/* jailed ROOT USER CHILDREN: makes ROOT its root unless that is "-", gives up its rights to USER unless that is 0, and repeats each line that
 * it reads with its number; with CHILDREN 1 a child of its own says the number. */
#define _GNU_SOURCE
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void must(int holds, const char *what)
{
    if (!holds) {
        perror(what);
        _exit(2);
    }
}

static int number_of(int line, int by_child)
{
    int status, pid = by_child ? fork() : 0;
    if (!by_child)
        return line;
    must(pid >= 0, "fork");
    if (pid == 0)
        _exit(line);
    must(waitpid(pid, &status, 0) == pid && WIFEXITED(status), "waitpid");
    return WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
    char line[64];
    must(argc == 4, "usage");
    if (strcmp(argv[1], "-"))
        must(!chroot(argv[1]) && !chdir("/"), "chroot");
    int user = atoi(argv[2]);
    if (user)
        must(!setgroups(0, NULL) && !setgid(user) && !setuid(user), "setuid");
    must(access("/proc/self", F_OK) != 0, "there is a /proc");
    for (int i = 1; fgets(line, sizeof line, stdin); i++) {
        printf("%d %s", number_of(i, atoi(argv[3])), line);
        fflush(stdout);
    }
    return 0;
}
