/* Keeps a ledger that it never syncs, and tells of every line of it. What it told of must be in the ledger, for ever.
 * ledger LINES [PAGES]: a file of its own only for every so many-th round. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LINE = 24 };

static void must(int holds, const char *what, int line)
{
    if (holds)
        return;
    char text[100];
    int len = snprintf(text, sizeof text, "\nbroken at %d: %s\n", line, what);
    if (write(1, text, len) != len)
        _exit(3);
    _exit(2);
}

static void format(char *to, int n, uint64_t sum)
{
    char text[40];
    snprintf(text, sizeof text, "%06d %016llx\n", n, (unsigned long long)sum);
    memcpy(to, text, LINE);
}

/* The sum after line `n`: of everything before it. */
static uint64_t add(uint64_t sum, int n)
{
    for (int i = 0; i < 1000; i++)
        sum = (sum ^ (uint64_t)(n + i)) * 0x100000001b3;
    return sum;
}

/* Everything that was told of is there. */
static void check(int file, int lines)
{
    uint64_t sum = 1;
    char expected[LINE + 1], found[LINE + 1] = "";
    for (int n = 1; n <= lines; n++) {
        sum = add(sum, n);
        format(expected, n, sum);
        must(pread(file, found, LINE, (n - 1) * LINE) == LINE, "the ledger is too short", n);
        must(!memcmp(found, expected, LINE), "another line in the ledger", n);
    }
}

int main(int argc, char **argv)
{
    int lines = argc > 1 ? atoi(argv[1]) : 100, pages = argc > 2 ? atoi(argv[2]) : 1;
    int file = open("ledger", O_RDWR | O_CREAT, 0600), appended = open("appended", O_RDWR | O_CREAT | O_APPEND, 0600);
    must(file >= 0 && appended >= 0, "open", 0);
    uint64_t sum = 1;
    char line[LINE + 1], name[2][32];
    for (int n = 1; n <= lines; n++) {
        /* Through the vDSO, which is another one after a boot of another kernel. */
        struct timespec now[2];
        must(!clock_gettime(CLOCK_REALTIME, &now[0]) && !clock_gettime(CLOCK_REALTIME, &now[1]), "clock_gettime", n);
        must(now[0].tv_sec > 1500000000 && now[1].tv_sec >= now[0].tv_sec, "the time", n);
        sum = add(sum, n);
        format(line, n, sum);
        must(write(file, line, LINE) == LINE, "write", n);
        must(write(appended, line, LINE) == LINE, "append", n);
        if (n % pages) {
            must(write(1, line, LINE) == LINE, "tell", n);
            continue;
        }
        /* A file of each round, under its name only when it is whole. What is older is written over. */
        must(pwrite(file, line, LINE, (n - 1) * LINE) == LINE, "write over", n);
        snprintf(name[0], sizeof *name, "page.%d", n - pages);
        snprintf(name[1], sizeof *name, "page.%d", n);
        int page = open("page.new", O_WRONLY | O_CREAT | O_TRUNC, 0600);
        must(page >= 0 && write(page, line, LINE) == LINE && !close(page), "a page", n);
        must(!rename("page.new", name[1]), "rename", n);
        must(n == pages || !unlink(name[0]), "unlink", n);
        must(write(1, line, LINE) == LINE, "tell", n);
        if (n / pages % 8 == 0 || n == lines) {
            check(file, n);
            check(appended, n);
            must(!access(name[1], F_OK) && access(name[0], F_OK), "the page of this round", n);
        }
    }
    must(lseek(appended, 0, SEEK_END) == lines * LINE, "the length of what was appended", lines);
    return 0;
}
