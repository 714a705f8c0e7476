/* Loaded before a game, so that chance is the same in every run: whatever the game takes as its seed, it is the one that the
 * environment has, or that of a generator that nobody has seeded. */
#include <stdlib.h>

void srandom(unsigned seed)
{
    static char state[128];
    const char *fixed = getenv("GAME_SEED");
    (void)seed;
    initstate(fixed ? strtoul(fixed, NULL, 10) : 1, state, sizeof state);
}
