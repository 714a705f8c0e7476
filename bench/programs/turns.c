/* Works for as long as it is told: a byte says that a turn begins, and one that it is over.
 * turns COUNT: a thousand steps of a computation each. */
#include "measure.h"

int main(int argc, char **argv)
{
    uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) * 1000 : 0, x = 0x9e3779b97f4a7c15;
    char byte;

    while (read(0, &byte, 1) == 1) {
        for (uint64_t i = 0; i < count; i++) {
            x ^= x << 13;
            x = x << 7 | x >> 57;
            __asm__ volatile("" : "+r"(x));
        }
        if (write(1, &byte, 1) != 1)
            return 1;
    }
    return 0;
}
