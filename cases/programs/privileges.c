/* Starts as root, becomes another user for good, and prints again and again who it is and what it may do.
 * A recovery must not give it back what it gave up. privileges ROUNDS */
#define _GNU_SOURCE
#include "tell.h"
#include <fcntl.h>
#include <grp.h>
#include <sys/prctl.h>

enum { USER = 20472 };

/* The line of /proc/self/status that begins with `what`. */
static void show(const char *what)
{
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    must(status != NULL, "open /proc/self/status");
    while (fgets(line, sizeof line, status))
        if (!strncmp(line, what, strlen(what)))
            tell("%s", line);
    fclose(status);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 300;
    gid_t group = USER;
    show("Uid:");
    must(!setgroups(1, &group) && !setresgid(USER, USER, USER) && !setresuid(USER, USER, USER), "give up privileges");
    for (int i = 0; i < rounds; i++) {
        uid_t real, effective, saved;
        must(!getresuid(&real, &effective, &saved), "getresuid");
        int back = setuid(0), shadow = open("/etc/shadow", O_RDONLY);
        tell("%d user %u %u %u groups %d back %d shadow %d\n", i, real, effective, saved, getgroups(0, NULL), back,
             shadow < 0 ? -1 : 0);
        show("CapEff:");
        show("CapPrm:");
    }
    return 0;
}
