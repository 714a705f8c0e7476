/* Fails the same way every time: crasher LINES SIGNAL-NAME. Prints LINES lines, then dies. */
#include "tell.h"
#include <signal.h>

int main(int argc, char **argv)
{
    int lines = argc > 1 ? atoi(argv[1]) : 10;
    const char *how = argc > 2 ? argv[2] : "segv";
    volatile int zero = 0, *volatile nowhere = (int *)16;
    for (int i = 0; i < lines; i++)
        tell("line %d\n", i);
    if (!strcmp(how, "segv"))
        *nowhere = 1;
    if (!strcmp(how, "fpe"))
        zero = 1 / zero;
    if (!strcmp(how, "ill"))
        __builtin_trap();
    if (!strcmp(how, "term"))
        raise(SIGTERM);
    if (!strcmp(how, "exit"))
        return 77;
    abort();
}
