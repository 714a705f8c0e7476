/* Filters of system calls, built rule by rule: what no rule is about has the answer that `install` is told. */
#pragma once
#include "tell.h"
#include "needs.h"
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <ucontext.h>

enum { MOST = 1024 };

static struct sock_filter rules[MOST];
static int length;

static inline void rule(struct sock_filter one)
{
    must(length < MOST, "room for the filter");
    rules[length++] = one;
}

static inline void load(size_t offset)
{
    rule((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset));
}

static inline void answer_with(unsigned value)
{
    rule((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, value));
}

/* What follows, up to a length that `end` sets, is for this call alone. */
static inline int begin(int number)
{
    load(offsetof(struct seccomp_data, nr));
    rule((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 0));
    return length;
}

static inline void end(int begun)
{
    rules[begun - 1].jf = length - begun;
}

static inline void about(int number, unsigned value)
{
    int begun = begin(number);
    answer_with(value);
    end(begun);
}

static inline void about_argument(int number, int argument, unsigned wanted, unsigned value)
{
    int begun = begin(number);
    load(offsetof(struct seccomp_data, args) + 8 * argument);
    rule((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, wanted, 0, 1));
    answer_with(value);
    end(begun);
}

static inline void install(unsigned flags, unsigned otherwise)
{
    answer_with(otherwise);
    struct sock_fprog filter = {length, rules};
    must(!syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &filter), "install the filter");
    length = 0;
}

static inline void allow(const struct need *needs, size_t count)
{
    for (; count--; needs++) {
        if (needs->count == 0)
            about(needs->nr, SECCOMP_RET_ALLOW);
        for (int n = 0; n < needs->count; n++)
            about_argument(needs->nr, needs->arg, needs->values[n], SECCOMP_RET_ALLOW);
    }
}

#define ALLOW(needs) allow(needs, sizeof(needs) / sizeof *(needs))
