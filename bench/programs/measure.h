/* What the measured programs share: a clock that is no system call, memory that is really there, and a file of results.
 * What they measure goes to a file, never to standard output: that is a pipe whose writes are being measured. */
#pragma once
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static inline uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline void fail(const char *what)
{
    perror(what);
    exit(1);
}

/* Memory of which every page was written once. */
static inline char *resident(size_t bytes)
{
    char *m = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m == MAP_FAILED)
        fail("mmap");
    for (size_t at = 0; at < bytes; at += 4096)
        *(volatile uint64_t *)(m + at) = at + 1;
    return m;
}

static inline void visible_byte(void)
{
    if (write(1, "x", 1) != 1)
        fail("write");
}

/* A name that nobody can read half of: written beside it, then renamed. */
static inline void publish(const char *path, const char *text)
{
    char beside[4096];
    snprintf(beside, sizeof beside, "%s.new", path);
    FILE *f = fopen(beside, "w");
    if (!f || fputs(text, f) < 0 || fclose(f) || rename(beside, path))
        fail(path);
}

/* How often others were given this processor while we could have used it. */
static inline long preemptions(void)
{
    struct rusage usage;
    if (getrusage(RUSAGE_THREAD, &usage))
        fail("getrusage");
    return usage.ru_nivcsw;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Batches of iterations: those in which another program ran in between count only if there are no others. */
enum { BATCHES_MAX = 4000 };

struct batches {
    double clean[BATCHES_MAX], disturbed[BATCHES_MAX];
    int clean_count, disturbed_count;
    long preemptions;
    uint64_t began;
};

static inline void begin_batch(struct batches *b)
{
    b->preemptions = preemptions();
    b->began = now_ns();
}

static inline void end_batch(struct batches *b, int iterations)
{
    double each = (double)(now_ns() - b->began) / iterations;
    if (preemptions() == b->preemptions)
        b->clean[b->clean_count++] = each;
    else
        b->disturbed[b->disturbed_count++] = each;
}

/* The median batch, and none left. */
static inline double median(struct batches *b)
{
    int clean = b->clean_count > 0, count = clean ? b->clean_count : b->disturbed_count;
    double *values = clean ? b->clean : b->disturbed;
    qsort(values, count, sizeof *values, by_value);
    b->clean_count = b->disturbed_count = 0;
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}
