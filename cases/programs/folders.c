/* Walks about in folders by relative paths and makes files there under changing masks; says where it is, what mode each
 * file got, and which mask was there before.
 * folders ROUNDS */
#define _GNU_SOURCE
#include "tell.h"
#include <fcntl.h>
#include <sys/stat.h>

static long make(const char *name)
{
    struct stat st;
    int file = open(name, O_CREAT | O_EXCL | O_WRONLY, 0777);
    must(file >= 0 && !fstat(file, &st) && !close(file), name);
    must(!unlink(name), "unlink");
    return st.st_mode & 0777;
}

int main(int argc, char **argv)
{
    static const int masks[] = {0, 022, 077, 0, 0137};
    int rounds = argc > 1 ? atoi(argv[1]) : 300, start = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char where[4096];
    struct stat st;
    must(start >= 0 && !mkdir("in", 0700) && !mkdir("in/in", 0700), "make folders");
    long before = umask(022);
    for (int i = 0; i < rounds; i++) {
        long old = umask(masks[i % 5]), missing = chdir("missing");
        must(!chdir("in") && !chdir("in"), "go in");
        long inner = make("file");
        must(getcwd(where, sizeof where) != NULL, "getcwd");
        size_t len = strlen(where);
        must(!chdir("..") && stat("in", &st) == 0, "go out");
        long outer = make("file");
        must(!fchdir(start), "go back");
        tell("%d before %lo old %lo missing %ld inner %lo outer %lo at %s\n", i, before, old, missing, inner, outer,
             len > 6 ? where + len - 6 : where);
    }
    return 0;
}
