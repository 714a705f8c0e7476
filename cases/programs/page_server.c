/* Brings pages of its own memory on demand, in one of these ways: page_server WAY ROUNDS.
 *   thread    a thread serves the faults of another one (userfaultfd)
 *   polling   the same, with a descriptor that does not block, behind an epoll
 *   several   the same for four threads that compute, in four ranges, one served by the kernel's zeroes
 *   signal    the faulting thread serves itself, in a handler of SIGBUS
 *   moving    pages are moved there from a pool
 *   barrier   besides, pages are protected against writing, and a thread notes which were written
 *   kernel    pages that the kernel meets in system calls are brought, too (root)
 *   life      ranges come and go: unregistered, moved, unmapped, cut, closed
 * A page must be asked for exactly when it is missing: bringing one that is there (EEXIST), or finding another content, is an error. */
#define _GNU_SOURCE
#include "tell.h"
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>

#ifndef UFFDIO_MOVE
struct uffdio_move { __u64 dst, src, len, mode; __s64 move; };
#define UFFDIO_MOVE _IOWR(UFFDIO, 0x05, struct uffdio_move)
#endif

enum { PAGES = 96, PAGE = 4096, RANGES = 4 };

static char *memory[RANGES], *pool;
static volatile int faults;
static int polls, moves, threads = 1;
static int protects, is_kernel;
static unsigned long pool_next;
/* How often each page was brought, and was dropped since. */
static volatile unsigned brought[RANGES][PAGES];

static int range_of(unsigned long at)
{
    for (int r = 0; r < RANGES; r++)
        if (memory[r] && at >= (unsigned long)memory[r] && at < (unsigned long)memory[r] + PAGES * PAGE)
            return r;
    must(0, "a fault elsewhere");
    return 0;
}

static unsigned char content(int range, int page, unsigned time)
{
    return range == RANGES - 1 ? 0 : 'a' + (range * 7 + page * 3 + time * 5) % 26;
}

static void bring(unsigned long address)
{
    char buffer[2 * PAGE];
    char *filled = (char *)(((unsigned long)buffer + PAGE - 1) & ~(PAGE - 1UL));
    unsigned long at = address & ~(PAGE - 1UL);
    int range = range_of(at), page = (at - (unsigned long)memory[range]) / PAGE;
    unsigned time = ++brought[range][page];
    if (range == RANGES - 1) {
        struct uffdio_zeropage zero = {.range = {at, PAGE}};
        must(!ioctl(faults, UFFDIO_ZEROPAGE, &zero), "UFFDIO_ZEROPAGE");
    } else if (moves) {
        char *from = pool + pool_next++ % PAGES * PAGE;
        memset(from, content(range, page, time), PAGE);
        struct uffdio_move move = {.dst = at, .src = (unsigned long)from, .len = PAGE};
        must(!ioctl(faults, UFFDIO_MOVE, &move) && move.move == PAGE, "UFFDIO_MOVE");
    } else {
        memset(filled, content(range, page, time), PAGE);
        struct uffdio_copy copy = {.dst = at, .src = (unsigned long)filled, .len = PAGE};
        must(!ioctl(faults, UFFDIO_COPY, &copy) && copy.copy == PAGE, "UFFDIO_COPY");
    }
}

/* Which pages were written since they were protected. */
static volatile unsigned char dirty[RANGES][PAGES];

static void protect(int range, int page, int count, int on)
{
    struct uffdio_writeprotect change = {.range = {(unsigned long)memory[range] + page * PAGE, count * PAGE},
                                         .mode = on ? UFFDIO_WRITEPROTECT_MODE_WP : 0};
    must(!ioctl(faults, UFFDIO_WRITEPROTECT, &change), "UFFDIO_WRITEPROTECT");
}

static void note_write(unsigned long at)
{
    int range = range_of(at), page = (at - (unsigned long)memory[range]) / PAGE;
    dirty[range][page] = 1;
    protect(range, page, 1, 0);
}

static void *serve(void *unused)
{
    struct uffd_msg message;
    for (;;) {
        struct epoll_event event;
        if (polls && epoll_wait(polls, &event, 1, -1) < 1)
            continue;
        ssize_t n = read(faults, &message, sizeof message);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        must(n == sizeof message && message.event == UFFD_EVENT_PAGEFAULT, "read");
        if (message.arg.pagefault.flags & UFFD_PAGEFAULT_FLAG_WP)
            note_write(message.arg.pagefault.address);
        else
            bring(message.arg.pagefault.address);
    }
    return unused;
}

static void on_sigbus(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)context;
    if (info->si_code <= 0)
        return; /* Sent by somebody. */
    bring((unsigned long)info->si_addr);
}

static void make(unsigned long features, int flags)
{
    faults = syscall(SYS_userfaultfd, O_CLOEXEC | (is_kernel ? 0 : UFFD_USER_MODE_ONLY) | flags);
    must(faults >= 0, "userfaultfd");
    struct uffdio_api api = {.api = UFFD_API, .features = features};
    must(!ioctl(faults, UFFDIO_API, &api) && (api.features & features) == features, "UFFDIO_API");
}

static void map(int range)
{
    memory[range] = mmap((void *)(0x100000000 + range * 0x10000000UL), PAGES * PAGE, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    must(memory[range] != MAP_FAILED, "mmap");
}

static void enroll(int range)
{
    if (protects) {
        unsigned long mode = UFFDIO_REGISTER_MODE_WP | (range == 0 ? UFFDIO_REGISTER_MODE_MISSING : 0);
        struct uffdio_register wanted = {.range = {(unsigned long)memory[range], PAGES * PAGE}, .mode = mode};
        must(!ioctl(faults, UFFDIO_REGISTER, &wanted) && wanted.ioctls & 1 << _UFFDIO_WRITEPROTECT, "UFFDIO_REGISTER");
        return;
    }
    struct uffdio_register wanted = {.range = {(unsigned long)memory[range], PAGES * PAGE}, .mode = UFFDIO_REGISTER_MODE_MISSING};
    must(!ioctl(faults, UFFDIO_REGISTER, &wanted) && wanted.ioctls & 1 << _UFFDIO_COPY, "UFFDIO_REGISTER");
    must(!(wanted.ioctls & 1 << _UFFDIO_WRITEPROTECT), "UFFDIO_WRITEPROTECT where it was not asked for");
}

/* One step of a computation: a page is read and written, and perhaps dropped. Returns what it held. */
static unsigned step(int range, uint64_t *seed)
{
    static unsigned writes[RANGES][PAGES];
    *seed ^= *seed << 13, *seed ^= *seed >> 7, *seed ^= *seed << 17;
    int page = *seed >> 20 & 63;
    page = page * PAGES / 64;
    volatile unsigned char *at = (unsigned char *)memory[range] + page * PAGE;
    unsigned char first = at[0], last = at[PAGE - 1];
    unsigned time = brought[range][page];
    must(time > 0 && last == content(range, page, time), "the page that was brought");
    unsigned writes_now = writes[range][page];
    must(first == (unsigned char)(content(range, page, time) + writes_now), "what was written since");
    if (*seed & 3) {
        at[0] = first + 1;
        writes[range][page]++;
    }
    if (*seed >> 40 & 7)
        return first + time;
    must(!madvise((void *)at, PAGE, MADV_DONTNEED), "MADV_DONTNEED");
    writes[range][page] = 0;
    return first + time;
}

static int rounds;
static pthread_barrier_t barrier;
static unsigned sums[RANGES];

static void *compute(void *number)
{
    int range = (int)(long)number;
    uint64_t seed = 88172645463325252 + range;
    for (int i = 0; i < rounds; i++) {
        for (int n = 0; n < 8; n++)
            sums[range] = sums[range] * 31 + step(range, &seed);
        pthread_barrier_wait(&barrier);
        if (range == 0)
            tell("%d %08x %08x %08x %08x\n", i, sums[0], sums[1], sums[2], sums[3]);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

/* A barrier for writes, as garbage collectors have one: the pages that were written since all were protected. */
static void collect(void)
{
    uint64_t seed = 88172645463325252;
    for (int i = 0; i < rounds; i++) {
        memset((void *)dirty, 0, sizeof dirty);
        protect(0, 0, PAGES, 1), protect(1, 0, PAGES, 1);
        unsigned char written[2][PAGES] = {0}, fresh[PAGES] = {0};
        unsigned sum = 0;
        for (int n = 0; n < 12; n++) {
            if (n % 3 == 2)
                tell("%d %d %08x\n", i, n, sum);
            seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
            int page = (seed >> 20) % PAGES, range = seed >> 50 & 1;
            unsigned before = brought[range][page];
            volatile unsigned char *at = (unsigned char *)memory[range] + page * PAGE;
            sum = sum * 31 + at[7] + at[PAGE - 1];
            fresh[page] |= range == 0 && brought[0][page] != before;
            if (seed & 3)
                at[7]++, written[range][page] = 1;
            if (range == 0 && !(seed >> 55 & 7)) {
                must(!madvise((void *)at, PAGE, MADV_DONTNEED), "MADV_DONTNEED");
                written[0][page] = fresh[page] = 0, dirty[0][page] = 0;
            }
        }
        int count = 0;
        for (int r = 0; r < 2; r++)
            for (int page = 0; page < PAGES; page++) {
                /* What was brought was writable at once. */
                int wanted = written[r][page] && !(r == 0 && fresh[page]);
                must(dirty[r][page] == wanted, "the pages that were written");
                count += dirty[r][page];
            }
        tell("%d %08x %d\n", i, sum, count);
    }
}

/* The kernel reads and writes where pages are missing. */
static void call(void)
{
    int ends[2];
    must(!pipe(ends), "pipe");
    uint64_t seed = 88172645463325252;
    for (int i = 0; i < rounds; i++) {
        seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
        int page = (seed >> 20) % (PAGES - 2);
        volatile unsigned char *at = (unsigned char *)memory[0] + page * PAGE;
        must(!madvise((void *)at, 2 * PAGE, MADV_DONTNEED), "MADV_DONTNEED");
        unsigned before = brought[0][page], next = brought[0][page + 1];
        switch (i % 5) {
        case 0:
            put_all(1, (char *)at + PAGE - 4, 8);
            break;
        case 1:
            put_all(ends[1], "piped", 5);
            must(read(ends[0], (void *)(at + PAGE - 2), 5) == 5, "read");
            must(at[PAGE - 2] == 'p' && at[PAGE + 2] == 'd', "what was read");
            break;
        case 2: {
            struct iovec parts[2] = {{(void *)(at + 100), 3}, {(void *)(at + PAGE + 100), 3}};
            must(writev(1, parts, 2) == 6, "writev");
            break;
        }
        case 3:
            must(!syscall(SYS_clock_gettime, CLOCK_MONOTONIC, at + PAGE - 8), "clock_gettime");
            break;
        case 4:
            must(syscall(SYS_getcwd, at + PAGE - 1, 2) == -1 || at[PAGE - 1] == '/', "getcwd");
            must(!syscall(SYS_getrusage, 0, at + PAGE - 8), "getrusage");
            break;
        }
        must(brought[0][page] == before + 1 && brought[0][page + 1] == next + 1, "each is brought once");
        must(at[50] == content(0, page, before + 1) && at[PAGE + 500] == content(0, page + 1, next + 1), "the rest of the page");
        tell(" %d %c\n", i, at[50]);
    }
}

/* What becomes of ranges in a program's life. */
static void live(int i)
{
    map(0), enroll(0);
    memset((void *)brought[0], 0, sizeof brought[0]);
    char *start = memory[0];
    volatile char *at = start;
    int sum = at[0] + at[40 * PAGE];
    switch (i % 6) {
    case 0: {
        struct uffdio_range range = {(unsigned long)at, 32 * PAGE};
        must(!ioctl(faults, UFFDIO_UNREGISTER, &range), "UFFDIO_UNREGISTER");
        must(at[PAGE] == 0 && at[31 * PAGE] == 0, "what is not registered any more");
        sum += at[32 * PAGE];
        break;
    }
    case 1: {
        volatile char *to = mremap(start, PAGES * PAGE, PAGES * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)0x300000000);
        must(to == (void *)0x300000000, "mremap");
        must(to[0] == content(0, 0, 1) && to[PAGE] == 0, "what has moved");
        sum += to[40 * PAGE];
        munmap((void *)to, PAGES * PAGE);
        break;
    }
    case 2:
        must(!munmap(start + 8 * PAGE, 8 * PAGE), "munmap");
        must(mmap(start + 8 * PAGE, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == start + 8 * PAGE, "mmap");
        must(at[9 * PAGE] == 0, "what was mapped anew");
        sum += at[7 * PAGE] + at[16 * PAGE];
        break;
    case 3: {
        int other = fcntl(faults, F_DUPFD_CLOEXEC, 100);
        must(other >= 100 && !close(faults), "close");
        tell("%d is served by another number\n", i);
        int number = faults;
        faults = other;
        sum += at[50 * PAGE];
        faults = dup2(other, number);
        must(faults == number && !close(other), "dup2");
        sum += at[51 * PAGE];
        break;
    }
    case 4:
        must(!mprotect(start, PAGES * PAGE, PROT_READ), "mprotect");
        sum += at[3 * PAGE];
        must(!mprotect(start, PAGES * PAGE, PROT_READ | PROT_WRITE), "mprotect");
        at[4 * PAGE] = 1;
        sum += at[4 * PAGE + 1] + at[4 * PAGE];
        break;
    case 5:
        must(!close(faults), "close");
        must(at[60 * PAGE] == 0 && at[40 * PAGE] == content(0, 40, 1), "what nobody serves any more");
        make(UFFD_FEATURE_SIGBUS, 0);
        break;
    }
    tell("%d %d\n", i, sum);
    munmap(start, PAGES * PAGE);
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "thread";
    rounds = argc > 2 ? atoi(argv[2]) : 100;
    for (int i = 0; i < 10; i++)
        tell("%d before\n", i);
    int is_signal = !strcmp(way, "signal"), is_life = !strcmp(way, "life"), is_polling = !strcmp(way, "polling");
    protects = !strcmp(way, "barrier");
    is_kernel = !strcmp(way, "kernel");
    moves = !strcmp(way, "moving");
    threads = !strcmp(way, "several") ? RANGES : 1;
    make(is_signal || is_life ? UFFD_FEATURE_SIGBUS : 0, is_polling ? O_NONBLOCK : 0);
    if (is_signal || is_life) {
        struct sigaction action = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO};
        must(!sigaction(SIGBUS, &action, NULL), "sigaction");
    }
    if (is_polling) {
        polls = epoll_create1(EPOLL_CLOEXEC);
        struct epoll_event event = {.events = EPOLLIN, .data.fd = faults};
        must(polls >= 0 && !epoll_ctl(polls, EPOLL_CTL_ADD, faults, &event), "epoll_ctl");
    }
    if (moves) {
        pool = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        must(pool != MAP_FAILED, "mmap");
    }
    pthread_t server, others[RANGES];
    if (!is_signal && !is_life)
        must(!pthread_create(&server, NULL, serve, NULL), "pthread_create");
    if (is_life) {
        for (int i = 0; i < rounds; i++)
            live(i);
        return 0;
    }
    if (is_kernel) {
        map(0), enroll(0);
        call();
        return 0;
    }
    if (protects) {
        map(0), map(1);
        memset(memory[1], 1, PAGES * PAGE);
        enroll(0), enroll(1);
        collect();
        return 0;
    }
    for (int r = 0; r < (threads > 1 ? RANGES : 1); r++)
        map(r), enroll(r);
    pthread_barrier_init(&barrier, NULL, threads);
    for (int r = 1; r < threads; r++)
        must(!pthread_create(&others[r], NULL, compute, (void *)(long)r), "pthread_create");
    compute(NULL);
    return 0;
}
