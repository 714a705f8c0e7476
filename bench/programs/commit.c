/* What one visible byte costs after K pages were dirtied: commit RESULT MEGABYTES hot|whole|cold BATCHES ITERATIONS K...
 * Hot pages are the same ones each time, in which one word changes, or with "whole" every byte; cold ones were not touched for
 * long. RESULT gets a line "K NANOSECONDS" for each K: the median over the batches of the mean of an iteration. */
#include "measure.h"

enum { WARM_UP = 100, TEXT = 4096 };

/* Visits every page once before any comes again, far from the one before: 40503 has no factor of 2 or 5. */
static size_t scattered(size_t n, size_t pages)
{
    return n * 40503 % pages;
}

int main(int argc, char **argv)
{
    if (argc < 7)
        return 2;
    size_t bytes = strtoul(argv[2], NULL, 10) << 20, pages = bytes >> 12, next = 0, turn = 0;
    int cold = !strcmp(argv[3], "cold"), whole = !strcmp(argv[3], "whole"), batches = atoi(argv[4]), iterations = atoi(argv[5]);
    static struct batches cost;
    char text[TEXT] = "";
    if (batches < 1 || batches > BATCHES_MAX || iterations < 1)
        return 2;
    int warm_up = batches * iterations < WARM_UP ? batches * iterations : WARM_UP;
    char *memory = resident(bytes);
    visible_byte();
    for (int a = 6; a < argc; a++) {
        size_t k = strtoul(argv[a], NULL, 10);
        for (int b = cold ? 0 : -1; b < batches; b++) {
            int rounds = b < 0 ? warm_up : iterations;
            begin_batch(&cost);
            for (int i = 0; i < rounds; i++) {
                if (whole)
                    memset(memory, (int)turn++, k << 12);
                for (size_t p = 0; p < k && !whole; p++) {
                    size_t page = cold ? scattered(next++, pages) : p;
                    ++*(volatile uint64_t *)(memory + (page << 12) + 128);
                }
                visible_byte();
            }
            if (b >= 0)
                end_batch(&cost, rounds);
        }
        snprintf(text + strlen(text), TEXT - strlen(text), "%zu %.1f\n", k, median(&cost));
    }
    publish(argv[1], text);
    return 0;
}
