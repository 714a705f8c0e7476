/* Passes standard input on to standard output in pieces of pseudo-random sizes; at the end says how much on standard error. */
#include "tell.h"

int main(void)
{
    static char bytes[1 << 16];
    uint64_t random = 42, total = 0;
    for (ssize_t n; (n = read(0, bytes, 1 + next(&random) % sizeof bytes)) != 0;) {
        must(n > 0, "read");
        put_all(1, bytes, n);
        total += n;
    }
    dprintf(2, "%lu bytes\n", total);
    return 0;
}
