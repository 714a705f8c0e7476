/* Takes memory, MiB by MiB, and tells when it has what it wants. `hungry hold MIB` keeps it until it is killed; `hungry MIB` waits
 * for the end of its input first, then looks whether its memory still holds what it wrote. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB (1 << 20)

int main(int argc, char **argv) {
    int holds = argc > 2, count = atoi(argv[holds ? 2 : 1]);
    char **pieces = calloc(count, sizeof *pieces);
    printf("begun\n");
    fflush(stdout);
    for (int i = 0; i < count; i++) {
        pieces[i] = malloc(MIB);
        memset(pieces[i], i + 1, MIB);
    }
    printf("full\n");
    fflush(stdout);
    while (holds)
        pause();
    char c;
    while (read(0, &c, 1) > 0)
        ;
    for (int i = 0; i < count; i++)
        for (int at = 0; at < MIB; at++)
            if (pieces[i][at] != (char)(i + 1))
                return 1;
    printf("right\n");
    return 0;
}
