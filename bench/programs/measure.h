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

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static inline double median(double *values, int count)
{
    qsort(values, count, sizeof *values, by_value);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}
