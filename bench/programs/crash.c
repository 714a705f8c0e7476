/* Waits to be crashed with 100 dirty pages: crash. Each turn commits often enough that a crash is not taken for the one
 * before, dirties the pages of a process of 16 MB, and computes for some milliseconds. */
#include "measure.h"

enum { COMMITS = 100, DIRTY = 100, BYTES = 16 << 20, COMPUTE_NS = 8000000 };

int main(void)
{
    char *memory = resident(BYTES);
    for (uint64_t turn = 0;; turn++) {
        for (int i = 0; i < COMMITS; i++)
            visible_byte();
        for (int p = 0; p < DIRTY; p++)
            *(volatile uint64_t *)(memory + p * (BYTES / DIRTY & ~4095)) = turn;
        for (uint64_t until = now_ns() + COMPUTE_NS; now_ns() < until;)
            ;
    }
}
