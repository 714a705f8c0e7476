/* A program that takes part: its functions print, are killed in the middle, and are called neither too seldom nor twice at once.
 * taking_part ROUNDS [THREADS] */
#define _GNU_SOURCE
#include "tell.h"
#include "../../crates/api/outlast.h"
#include <pthread.h>
#include <sys/mman.h>

static volatile int asked, running_before, running_after;
static volatile unsigned long long seen;
static volatile long called;
static char *cache;
static __thread int is_main;

enum { CACHE = 1 << 16 };

static void answer(void)
{
    int round = __atomic_exchange_n(&asked, 0, __ATOMIC_SEQ_CST);
    if (round)
        tell("%d: commit\n", round);
}

/* Before every commit that main asks for a line; the cache is not worth keeping. */
static void before(void *argument)
{
    must(argument == (void *)&called && !running_before++, "the function before a commit");
    called++;
    memset(cache, 0, CACHE);
    if (is_main)
        answer();
    running_before--;
}

/* It is killed before and behind its commits, before which no function is called. */
static void after(void *argument, int how)
{
    must(argument == (void *)&seen && how >= OUTLAST_ROLLED_BACK && how <= OUTLAST_RESUMED, "arguments");
    must(!running_after++, "the function after a recovery was interrupted by itself");
    for (int i = 0; i < 3; i++)
        must(outlast_commit() != 0, "a commit after a recovery");
    struct outlast_status status;
    must(outlast_status(&status), "not protected after a recovery");
    seen = status.recoveries;
    running_after--;
}

/* No recovery is unknown when the program goes on. Only of a cold resume the counts begin anew. */
static void check(const char *where)
{
    struct outlast_status status;
    if (outlast_status(&status) && status.recoveries > seen) {
        dprintf(2, "%s: %llu recoveries, and %llu seen\n", where, status.recoveries, seen);
        _exit(2);
    }
}

static void *computes(void *argument)
{
    uint64_t state = (uintptr_t)argument, sum = 0;
    for (;;) {
        for (int i = 0; i < 1000; i++)
            sum = mix(sum, &(uint64_t){next(&state)}, 8);
        must(sum != 0, "a sum");
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 100, threads = argc > 2 ? atoi(argv[2]) : 0;
    uint64_t state = 1, sum = 0;
    is_main = 1;
    cache = mmap(NULL, CACHE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(cache != MAP_FAILED, "mmap");
    int protects = outlast_before_commit(before, (void *)&called);
    must(outlast_after_recovery(after, (void *)&seen) == protects, "registered");
    /* Those before it was registered. */
    struct outlast_status status;
    outlast_status(&status);
    __sync_bool_compare_and_swap(&seen, 0, status.recoveries);
    for (int i = 1; i <= threads; i++)
        must(!pthread_create(&(pthread_t){0}, NULL, computes, (void *)(uintptr_t)i), "pthread_create");
    unsigned long long last = 0;
    for (int i = 1; i <= rounds; i++) {
        check("in a round");
        for (int j = 0; j < 20000; j++)
            sum = mix(sum, &(uint64_t){next(&state)}, 8);
        memset(cache, i, CACHE);
        long had = called;
        asked = i;
        unsigned long long number = outlast_commit();
        must(!!number == protects, "protected or not");
        must(number > last || !protects, "the commit's number");
        /* While it runs in another thread commits are made without it. */
        must(threads || !protects || (called > had && !asked && !cache[i]), "a commit without the function");
        answer();
        last = number;
        tell("%d: %llx\n", i, (unsigned long long)sum);
    }
    return 0;
}
