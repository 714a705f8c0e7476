/* The stack grows deeper and deeper while lines are written: nothing but page faults tells the kernel's work. */
#include "tell.h"

enum { WORDS = 100, EVERY = 40 };

static uint64_t dive(int depth, uint64_t seed)
{
    volatile uint64_t ballast[WORDS];
    for (int i = 0; i < WORDS; i++)
        ballast[i] = seed + i;
    if (depth % EVERY == 0)
        tell("down %d\n", depth);
    uint64_t sum = depth ? dive(depth - 1, seed * 3 + depth) : 0;
    for (int i = 0; i < WORDS; i++)
        sum = sum * 31 + ballast[i];
    if (depth % EVERY == 0)
        tell("up %d %llu\n", depth, (unsigned long long)sum);
    return sum;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 10;
    for (int round = 1; round <= rounds; round++)
        dive(round * 200, round);
    return 0;
}
