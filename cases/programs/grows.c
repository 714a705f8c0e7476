/* Memory that grows downwards (MAP_GROWSDOWN): grows PAGES. Each round writes to the page below the lowest, where nothing is mapped yet,
 * and reads all of them. Half way the mapping is cut in two, of which the lower one goes on growing. */
#define _GNU_SOURCE
#include "tell.h"
#include <sys/mman.h>

enum { PAGE = 4096, FIRST = 4 };

int main(int argc, char **argv)
{
    long pages = argc > 1 ? atol(argv[1]) : 200;
    size_t room = (pages + 1024) * PAGE;
    /* Nothing else is mapped there, for the kernel leaves room between what grows and what it could grow into. */
    char *low = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    must(low != MAP_FAILED && !munmap(low, room - FIRST * PAGE), "room");
    char *top = low + room, *start = top - FIRST * PAGE;
    start = mmap(start, FIRST * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_GROWSDOWN, -1, 0);
    must(start != MAP_FAILED, "mmap");
    char *lowest = start;
    for (long page = 0; page < pages; page++) {
        lowest -= PAGE;
        *(volatile long *)lowest = page;
        if (page == pages / 2)
            must(!mprotect(start, FIRST * PAGE, PROT_READ), "mprotect");
        long sum = 0;
        for (char *p = start - PAGE; p >= lowest; p -= PAGE)
            sum += *(volatile long *)p;
        must(sum == page * (page + 1) / 2, "the sum");
        tell("%ld pages: %ld\n", page + 1, sum);
    }
    return 0;
}
