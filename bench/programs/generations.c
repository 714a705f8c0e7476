/* What keeping generations costs a program that commits without pause: generations RESULT MEGABYTES SECONDS. A turn dirties one
 * hot page, and every 64th one that was not written for long, and writes a byte. RESULT gets the mean turn and the longest. */
#include "measure.h"

enum { WARM_UP = 20000, TEXT = 128, COLD_EVERY = 64 };

static void turn(char *memory, size_t pages, size_t n, int out)
{
    ++*(volatile uint64_t *)(memory + 128);
    if (n % COLD_EVERY == 0)
        ++*(volatile uint64_t *)(memory + (n / COLD_EVERY * 40503 % pages << 12) + 128);
    if (write(out, "x", 1) != 1)
        fail("write");
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    size_t bytes = strtoul(argv[2], NULL, 10) << 20, n = 0;
    uint64_t length = strtoul(argv[3], NULL, 10) * 1000000000, longest = 0, before, began;
    /* A pipe would be full. */
    int out = open("/dev/null", O_WRONLY);
    if (bytes == 0 || length == 0 || out < 0)
        return 2;
    char *memory = resident(bytes), text[TEXT];
    while (n < WARM_UP)
        turn(memory, bytes >> 12, n++, out);
    n = 0;
    before = began = now_ns();
    while (before - began < length) {
        turn(memory, bytes >> 12, n++, out);
        uint64_t now = now_ns();
        if (now - before > longest)
            longest = now - before;
        before = now;
    }
    snprintf(text, TEXT, "turn %.1f\nlongest %.1f\n", (double)(before - began) / n, (double)longest);
    publish(argv[1], text);
    return 0;
}
