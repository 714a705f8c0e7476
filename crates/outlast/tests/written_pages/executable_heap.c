/* Linked statically, it has its restartable sequence on the heap, into which the kernel writes by itself. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static __thread int here;

int main(void)
{
    const uintptr_t page = 4096;
    uintptr_t start = (uintptr_t)&here / page * page;
    /* As much as is not made writable all at once. */
    uintptr_t end = (uintptr_t)sbrk(1 << 20) + (1 << 20);
    if (end < start || end - start > 8 << 20)
        return 2;
    if (mprotect((void *)start, (end - start) / page * page, PROT_READ | PROT_WRITE | PROT_EXEC))
        return 3;
    for (int i = 0; i < 1000; i++) {
        printf("%d\n", i);
        fflush(stdout);
    }
    return 0;
}
