/* Writes to its memory in every way there is, the kernel's included, with a visible byte after each: a commit that
 * misses a page is found by --check-commits. Arguments: how many rounds; "all": with what does not come back after a
 * kill, children and a descriptor of the memory itself. Standard output: one byte a step. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 1024, HUGE_LEN = 4 << 20 };

static char *memory, *huge;
static int zero, scratch, self;
static unsigned seed = 1;

static void visible(char c)
{
    if (write(1, &c, 1) != 1)
        exit(1);
}

static void must(int is_true, const char *what)
{
    if (!is_true) {
        perror(what);
        exit(1);
    }
}

static unsigned some(unsigned n)
{
    seed = seed * 1103515245 + 12345;
    return (seed >> 8) % n;
}

static char *page(void)
{
    return memory + some(PAGES) * (size_t)PAGE;
}

static void touch(char *at)
{
    ++*(volatile unsigned *)at;
}

static char *map(size_t len, int flags)
{
    char *m = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    must(m != MAP_FAILED, "mmap");
    return m;
}

/* The program's own writes. */
static void by_program(void)
{
    for (int k = 1; k <= 64; k *= 4) {
        for (int i = 0; i < k; i++)
            touch(page() + some(PAGE - 4));
        visible('p');
    }
    char *run = memory + some(PAGES - 40) * (size_t)PAGE;
    for (int i = 0; i < 40; i++)
        touch(run + i * PAGE);
    visible('r');
}

/* Pages dirtied again and again become hot, and cease to be. */
static void hot(void)
{
    char *at = page();
    for (int i = 0; i < 6; i++) {
        touch(at);
        visible('h');
    }
    must(mprotect(at, PAGE, PROT_NONE) == 0, "mprotect");
    visible('n');
    must(mprotect(at, PAGE, PROT_READ | PROT_WRITE) == 0, "mprotect");
    touch(at);
    visible('h');
    for (int i = 0; i < 4; i++) {
        touch(at);
        visible('h');
    }
    must(madvise(at, PAGE, MADV_FREE) == 0, "MADV_FREE");
    touch(at + 8);
    visible('f');
    touch(at + 16);
    visible('f');
    must(mprotect(at, PAGE, PROT_READ) == 0, "mprotect");
    visible('o');
    must(mprotect(at, PAGE, PROT_READ | PROT_WRITE) == 0, "mprotect");
    must(munmap(at + 1, PAGE) == -1 && errno == EINVAL, "munmap");
    touch(at + 24);
    visible('o');
}

/* The kernel copies into pages. */
static void by_kernel(void)
{
    must(read(zero, page(), 100) == 100, "read");
    visible('k');
    must(pread(self, page() + PAGE - 50, 100, 0) == 100, "pread");
    visible('k');
    struct iovec v[3] = {{page(), 10}, {page(), 20}, {page(), 30}};
    must(readv(zero, v, 3) == 60, "readv");
    visible('v');
    struct rusage *usage = (void *)page();
    must(getrusage(RUSAGE_SELF, usage) == 0, "getrusage");
    visible('u');
}

/* The kernel pins pages and writes behind the page tables. */
static void by_pinning(void)
{
    must(pread(scratch, page(), PAGE, 0) == PAGE, "pread O_DIRECT");
    visible('d');
    char *at = page();
    must(pread(scratch, at, PAGE, 0) == PAGE, "pread O_DIRECT");
    touch(at);
    visible('d');
    touch(at);
    visible('d');
    struct iovec from = {"pinned", 6}, to = {page(), 6};
    must(process_vm_writev(getpid(), &from, 1, &to, 1, 0) == 6, "process_vm_writev");
    visible('w');
    touch(to.iov_base);
    visible('w');
    /* A shared futex: its page is made writable, and not written. */
    uint32_t *word = (void *)page();
    syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
    visible('x');
    syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
    ++*(volatile uint32_t *)word;
    visible('x');
    ++*(volatile uint32_t *)word;
    visible('x');
}

/* The same through a descriptor. */
static void by_memory_file(void)
{
    int mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
    must(mem >= 0, "open");
    char *at = page();
    must(pwrite(mem, "memory", 6, (off_t)(uintptr_t)at) == 6, "pwrite");
    close(mem);
    touch(at + 100);
    visible('m');
    touch(at + 200);
    visible('m');
}

/* Mappings come, change and go. */
static void mappings(void)
{
    char *m = map(64 * PAGE, 0);
    visible('1');
    touch(m + 5 * PAGE);
    visible('2');
    m = mremap(m, 64 * PAGE, 128 * PAGE, MREMAP_MAYMOVE);
    must(m != MAP_FAILED, "mremap");
    touch(m + 100 * PAGE);
    visible('3');
    touch(m + 6 * PAGE);
    visible('3');
    must(madvise(m, 32 * PAGE, MADV_DONTNEED) == 0, "MADV_DONTNEED");
    visible('4');
    touch(m + 7 * PAGE);
    visible('5');
    must(madvise(m + 64 * PAGE, 32 * PAGE, MADV_POPULATE_WRITE) == 0, "MADV_POPULATE_WRITE");
    visible('6');
    touch(m + 70 * PAGE);
    visible('7');
    must(mlock(m, 16 * PAGE) == 0, "mlock");
    touch(m + 3 * PAGE);
    visible('8');
    touch(m + 4 * PAGE);
    visible('8');
    must(munmap(m, 128 * PAGE) == 0, "munmap");
    visible('9');
    m = map(32 * PAGE, MAP_POPULATE);
    touch(m + PAGE);
    visible('a');
    touch(m + 2 * PAGE);
    visible('a');
    char *file = mmap(m, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, self, 0);
    must(file == m, "mmap");
    (void)*(volatile char *)(file + PAGE);
    visible('b');
    touch(file + PAGE);
    visible('b');
    touch(file + 2 * PAGE);
    visible('b');
    must(munmap(m, 32 * PAGE) == 0, "munmap");
    /* What is moved next to another mapping may become one with it. */
    char *low = map(96 * PAGE, 0), *moved = map(48 * PAGE, 0);
    must(munmap(low, 96 * PAGE) == 0, "munmap");
    char *high = mmap(low + 64 * PAGE, 32 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    must(high == low + 64 * PAGE, "mmap");
    visible('n');
    must(mremap(moved, 48 * PAGE, 64 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, low) == low, "mremap");
    visible('n');
    touch(high + 13 * PAGE);
    visible('n');
    touch(low + 13 * PAGE);
    touch(high + 14 * PAGE);
    visible('n');
    must(munmap(low, 96 * PAGE) == 0, "munmap");
    char *end = sbrk(16 * PAGE);
    touch(end + 3 * PAGE);
    visible('c');
    sbrk(-16 * PAGE);
    visible('c');
}

/* Shared memory, which keeps its content when it is discarded. */
static void shared(void)
{
    char *m = mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(m != MAP_FAILED, "mmap");
    visible('S');
    (void)*(volatile char *)(m + 5 * PAGE);
    visible('S');
    touch(m + 5 * PAGE);
    touch(m + 6 * PAGE);
    visible('S');
    for (int i = 0; i < 64; i++)
        touch(m + i * PAGE);
    visible('S');
    touch(m + 9 * PAGE);
    must(madvise(m, 64 * PAGE, MADV_DONTNEED) == 0, "MADV_DONTNEED");
    visible('S');
    must(m[9 * PAGE] == 2 && m[5 * PAGE] == 2, "content of shared memory");
    visible('S');
    touch(m + 10 * PAGE);
    visible('S');
    must(m[10 * PAGE] == 2, "content of shared memory");
    must(munmap(m, 64 * PAGE) == 0, "munmap");
}

/* One fault fills 512 pages. */
static void huge_pages(void)
{
    char *at = (char *)(((uintptr_t)huge + (2 << 20) - 1) & ~(uintptr_t)((2 << 20) - 1));
    must(madvise(huge, HUGE_LEN, MADV_DONTNEED) == 0, "MADV_DONTNEED");
    visible('H');
    touch(at + some(512) * PAGE);
    visible('H');
    touch(at + some(512) * PAGE);
    touch(at + some(512) * PAGE);
    visible('H');
    must(madvise(at, 2 << 20, MADV_DONTNEED) == 0, "MADV_DONTNEED");
    (void)*(volatile char *)(at + 5 * PAGE);
    visible('H');
    touch(at + 9 * PAGE);
    visible('H');
    must(read(zero, at + 40 * PAGE, PAGE) == PAGE, "read");
    visible('H');
}

static void deep(int n)
{
    volatile char room[3 * PAGE];
    room[0] = n;
    room[PAGE] = room[0];
    visible('s');
    if (n > 0)
        deep(n - 1);
    room[2 * PAGE] = room[PAGE];
}

/* Children share pages for writing, or even the memory. */
static void children(void)
{
    pid_t child = fork();
    must(child >= 0, "fork");
    if (child == 0)
        _exit(0);
    touch(page());
    visible('F');
    must(waitpid(child, NULL, 0) == child, "waitpid");
    touch(page());
    visible('F');
    char *at = page();
    child = vfork();
    if (child == 0) {
        touch(at);
        _exit(0);
    }
    must(waitpid(child, NULL, 0) == child, "waitpid");
    visible('V');
    touch(at);
    visible('V');
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 1;
    char name[] = "written-pages.XXXXXX";
    zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    memory = map(PAGES * PAGE, 0);
    huge = map(HUGE_LEN, 0);
    madvise(huge, HUGE_LEN, MADV_HUGEPAGE);
    scratch = mkostemp(name, O_CLOEXEC);
    must(scratch >= 0 && unlink(name) == 0 && zero >= 0 && self >= 0, "open");
    must(write(scratch, memory, PAGE) == PAGE && fsync(scratch) == 0, "write");
    /* Not every file system has it; then it is one more read. */
    if (fcntl(scratch, F_SETFL, O_DIRECT) != 0)
        errno = 0;
    for (size_t i = 0; i < PAGES; i++)
        touch(memory + i * PAGE);
    visible('.');
    for (int i = 0; i < rounds; i++) {
        by_program();
        hot();
        by_kernel();
        by_pinning();
        mappings();
        shared();
        huge_pages();
        deep(8);
        if (argc > 2)
            by_memory_file();
        if (argc > 2 && i % 8 == 0)
            children();
    }
    return 0;
}
