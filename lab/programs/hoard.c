/* Awaits a line, takes memory, MiB by MiB, and tells of every STEP of them, which is a commit; awaits the end of its input, and
 * looks whether its memory holds what it wrote. `hoard MIB STEP`; `hoard hold MIB` takes it at once, and keeps it until it is killed. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORDS = (1 << 20) / sizeof(uint64_t) };

/* No two words of it are the same. */
static uint64_t word(int piece, int at)
{
    return ((uint64_t)piece * WORDS + at) * 0x9e3779b97f4a7c15;
}

static void tell(const char *what)
{
    printf("%s\n", what);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    int holds = argc > 2 && !strcmp(argv[1], "hold");
    int count = atoi(argv[holds ? 2 : 1]), step = holds || argc < 3 ? count + 1 : atoi(argv[2]);
    uint64_t **pieces = calloc(count, sizeof *pieces);
    tell("begun");
    char c = 0;
    while (!holds && c != '\n' && read(0, &c, 1) > 0)
        ;
    for (int i = 0; i < count; i++) {
        if (!(pieces[i] = malloc(WORDS * sizeof(uint64_t))))
            return 3;
        for (int at = 0; at < WORDS; at++)
            pieces[i][at] = word(i, at);
        char text[20];
        snprintf(text, sizeof text, "%d", i + 1);
        if ((i + 1) % step == 0)
            tell(text);
    }
    tell("full");
    while (holds)
        pause();
    while (read(0, &c, 1) > 0)
        ;
    for (int i = 0; i < count; i++)
        for (int at = 0; at < WORDS; at++)
            if (pieces[i][at] != word(i, at)) {
                printf("broken at %d of %d\n", at, i);
                return 1;
            }
    tell("right");
    return 0;
}
