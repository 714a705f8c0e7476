/* What a system call costs that nobody can see: calls RESULT FILE BATCHES ITERATIONS. RESULT gets "getppid NANOSECONDS",
 * "pread NANOSECONDS", for 64 bytes of FILE, and "poll NANOSECONDS", with a time-out and something there. */
#include "measure.h"

#include <poll.h>

int main(int argc, char **argv)
{
    if (argc != 5)
        return 2;
    int batches = atoi(argv[3]), iterations = atoi(argv[4]), file = open(argv[2], O_RDONLY);
    static struct batches parent, read, wait;
    struct pollfd ready = {file, POLLIN, 0};
    char bytes[64], text[200];
    if (file < 0 || batches < 1 || batches > BATCHES_MAX)
        fail(argv[2]);
    visible_byte();
    /* The first batch warms up: call sites are rewritten after they were met some times. */
    for (int b = -1; b < batches; b++) {
        begin_batch(&parent);
        for (int i = 0; i < iterations; i++)
            getppid();
        if (b >= 0)
            end_batch(&parent, iterations);
        begin_batch(&read);
        for (int i = 0; i < iterations; i++)
            if (pread(file, bytes, sizeof bytes, 0) < 0)
                fail("pread");
        if (b >= 0)
            end_batch(&read, iterations);
        begin_batch(&wait);
        for (int i = 0; i < iterations; i++)
            if (poll(&ready, 1, 1000) != 1)
                fail("poll");
        if (b >= 0)
            end_batch(&wait, iterations);
    }
    snprintf(text, sizeof text, "getppid %.1f\npread %.1f\npoll %.1f\n", median(&parent), median(&read), median(&wait));
    publish(argv[1], text);
    return 0;
}
