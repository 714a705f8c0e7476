/* One write per line to standard output, and an end with status 2 when something that must hold does not. */
#pragma once
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline void must(int holds, const char *what)
{
    if (holds)
        return;
    dprintf(2, "%s: %s\n", what, strerror(errno));
    _exit(2);
}

static inline void put_all(int fd, const char *bytes, size_t len)
{
    while (len) {
        ssize_t n = write(fd, bytes, len);
        must(n > 0, "write");
        bytes += n;
        len -= n;
    }
}

__attribute__((format(printf, 1, 2))) static inline void tell(const char *format, ...)
{
    char line[512];
    va_list values;
    va_start(values, format);
    int len = vsnprintf(line, sizeof line, format, values);
    va_end(values);
    must(len >= 0 && len < (int)sizeof line, "a line too long");
    put_all(1, line, len);
}

/* xorshift64: the same numbers in every run. */
static inline uint64_t next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

/* FNV-1a. */
static inline uint64_t mix(uint64_t sum, const void *bytes, size_t len)
{
    for (const unsigned char *p = bytes; len--; p++)
        sum = (sum ^ *p) * 0x100000001b3;
    return sum;
}
