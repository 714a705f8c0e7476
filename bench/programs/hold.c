/* A process of a size, waiting to be killed: hold READY MEGABYTES COMMITS. Makes COMMITS commits of up to eight random
 * pages each, then the file READY, and waits. */
#include "measure.h"

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    size_t bytes = strtoul(argv[2], NULL, 10) << 20, pages = bytes >> 12;
    uint64_t random = 88172645463325252;
    char *memory = resident(bytes);
    for (long c = strtol(argv[3], NULL, 10); c > 0; c--) {
        for (int p = 0; p <= c % 8; p++) {
            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            *(volatile uint64_t *)(memory + (random % pages << 12)) = random;
        }
        visible_byte();
    }
    visible_byte();
    publish(argv[1], "ready\n");
    for (;;)
        usleep(1000);
}
