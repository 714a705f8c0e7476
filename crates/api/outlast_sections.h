/* outlast_sections.h: for programs that say in which of their code sections threads are, so that `outlast run --hang` finds one that
 * does not leave a section within what it has taken before. Header only, C99 or C++, gcc or clang, no library. See outlast.h(3).
 *
 *     static const struct outlast_section parsing = OUTLAST_SECTION("parsing");
 *
 *     outlast_section_enter(&parsing);
 *     if (!next(token))
 *         return outlast_section_exit(&parsing, 1), -1;
 *     outlast_section_exit(&parsing, 0);
 *
 * Sections may be one in the other, overlap, and be entered by several threads; who enters one again has left it. No system call is made
 * but for one entry in 4096, and nothing depends on whether the program is protected.
 *
 * A program that is compiled with -finstrument-functions has a section for each function if one of its files says
 *
 *     #define OUTLAST_FUNCTIONS
 *     #include <outlast_sections.h>
 *
 * or if it is linked with what `gcc -c -x c -O2 -DOUTLAST_FUNCTIONS outlast_sections.h -o functions.o` makes. */
#ifndef OUTLAST_SECTIONS_H
#define OUTLAST_SECTIONS_H

#include "outlast.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A section. Lives as long as the program. */
struct outlast_section {
    const char *name;
    unsigned long long len_;
};

#define OUTLAST_SECTION(name) {name, 0}

/* The rest of the file but for the last functions is how it works, and may change. */

#define OUTLAST_OWN_ __attribute__((unused, no_instrument_function))
/* One for all files that are linked together. */
#define OUTLAST_ONE_ __attribute__((weak, visibility("hidden")))

#define OUTLAST_SLOTS_ 128
#define OUTLAST_DEPTH_ 32
#define OUTLAST_LEFT_ 16
#define OUTLAST_FUNCTION_ (1ULL << 63)

/* A handler of a signal may run between any two accesses. */
typedef volatile unsigned long long outlast_word_;

struct outlast_frame_ {
    outlast_word_ section, run, stack, caller;
};

struct outlast_left_ {
    outlast_word_ section, run, exit;
};

struct outlast_slot_ {
    outlast_word_ owner, runs, len, exits, reserved[4];
    struct outlast_frame_ frames[OUTLAST_DEPTH_];
    struct outlast_left_ left[OUTLAST_LEFT_];
};

struct outlast_registry_ {
    outlast_word_ magic, used, reserved[6];
    struct outlast_slot_ slots[OUTLAST_SLOTS_];
};

OUTLAST_ONE_ __attribute__((aligned(64))) struct outlast_registry_ outlast_registry_;
/* Of threads for which there is no room. */
OUTLAST_ONE_ struct outlast_slot_ outlast_spare_;
OUTLAST_ONE_ __thread struct outlast_slot_ *outlast_mine_;

OUTLAST_OWN_ static inline long outlast_call_(long number, long a, long b, long c)
{
#if defined(__x86_64__) && defined(__linux__)
    long result = number;
    __asm__ volatile("syscall" : "+a"(result) : "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return result;
#else
    (void)number, (void)a, (void)b, (void)c;
    return -38;
#endif
}

/* Adds one, whatever a handler does meanwhile, and returns what was there. */
OUTLAST_OWN_ static inline unsigned long long outlast_count_(outlast_word_ *word)
{
    unsigned long long by = 1;
#if defined(__x86_64__)
    __asm__ volatile("xaddq %0, %1" : "+r"(by), "+m"(*word) : : "memory", "cc");
    return by;
#else
    return __atomic_fetch_add(word, by, __ATOMIC_RELAXED);
#endif
}

OUTLAST_OWN_ static inline int outlast_claim_(struct outlast_slot_ *slot, unsigned long long from, unsigned long long to)
{
    return __atomic_compare_exchange_n(&slot->owner, &from, to, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* A slot for this thread: one that it, or another of its number, had before; a free one; one whose thread has ended. */
OUTLAST_OWN_ __attribute__((noinline, cold)) static struct outlast_slot_ *outlast_find_(unsigned long long self)
{
    int pass, i;
    for (pass = 0; pass < 3; pass++)
        for (i = 0; i < OUTLAST_SLOTS_; i++) {
            struct outlast_slot_ *slot = &outlast_registry_.slots[i];
            unsigned long long owner = slot->owner, used = outlast_registry_.used;
            /* tgkill without a signal: ESRCH. */
            int is_ours = pass == 0   ? owner == self
                          : pass == 1 ? !owner && outlast_claim_(slot, 0, self)
                                      : outlast_call_(234, outlast_call_(39, 0, 0, 0), (long)owner, 0) == -3
                                            && outlast_claim_(slot, owner, self);
            if (!is_ours)
                continue;
            slot->len = 0;
            while (used < (unsigned long long)i + 1
                   && !__atomic_compare_exchange_n(&outlast_registry_.used, &used, (unsigned long long)i + 1, 0,
                                                   __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
                ;
            return slot;
        }
    return &outlast_spare_;
}

/* At the first entry and every 4096th: a child has another number, and a program may have become protected meanwhile. */
OUTLAST_OWN_ __attribute__((noinline, cold)) static struct outlast_slot_ *outlast_slot_of_(void)
{
    unsigned long long self = (unsigned long long)outlast_call_(186, 0, 0, 0);
    struct outlast_slot_ *slot = outlast_mine_;
    if (!slot)
        slot = outlast_mine_ = outlast_find_(self);
    if (slot != &outlast_spare_)
        slot->owner = self;
    outlast_registry_.magic = 0x316365734c54554fULL;
    outlast_ask_(8, (long)&outlast_registry_, 0, 0);
    return slot;
}

/* Takes the frame away, and with that of a function those of functions above it, which were left by longjmp or an exception. */
OUTLAST_OWN_ static inline void outlast_take_away_(struct outlast_slot_ *slot, unsigned long long at, unsigned long long len)
{
    int is_function = (slot->frames[at].section & OUTLAST_FUNCTION_) != 0;
    unsigned long long to = at, i;
    for (i = at + 1; i < len; i++)
        if (!is_function || !(slot->frames[i].section & OUTLAST_FUNCTION_)) {
            slot->frames[to].section = slot->frames[i].section;
            slot->frames[to].stack = slot->frames[i].stack;
            slot->frames[to].caller = slot->frames[i].caller;
            slot->frames[to++].run = slot->frames[i].run;
        }
    for (i = to; i < len; i++)
        slot->frames[i].run = 0;
    slot->len = to;
}

OUTLAST_OWN_ static inline unsigned long long outlast_len_(struct outlast_slot_ *slot)
{
    unsigned long long len = slot->len;
    return len < OUTLAST_DEPTH_ ? len : OUTLAST_DEPTH_;
}

OUTLAST_OWN_ static inline void outlast_enter_(unsigned long long section, unsigned long long stack,
                                               unsigned long long caller)
{
    struct outlast_slot_ *slot = outlast_mine_;
    unsigned long long len, i;
    if (__builtin_expect(!slot || !(slot->runs & 4095), 0))
        slot = outlast_slot_of_();
    len = outlast_len_(slot);
    if (section & OUTLAST_FUNCTION_) {
        /* Functions whose frames the stack has no more, or that are called anew in the same place. */
        while (len && (slot->frames[len - 1].section & OUTLAST_FUNCTION_)
               && (slot->frames[len - 1].stack < stack
                   || (slot->frames[len - 1].stack == stack && slot->frames[len - 1].section == section)))
            outlast_take_away_(slot, len - 1, len), len--;
    } else {
        for (i = len; i-- > 0;)
            if (slot->frames[i].section == section) {
                outlast_take_away_(slot, i, len);
                len--;
                break;
            }
    }
    if (len == OUTLAST_DEPTH_) {
        outlast_count_(&slot->runs);
        return;
    }
    /* First the room, so that a handler takes its own. */
    slot->len = len + 1;
    slot->frames[len].run = 0;
    slot->frames[len].section = section;
    slot->frames[len].stack = stack;
    slot->frames[len].caller = caller;
    slot->frames[len].run = outlast_count_(&slot->runs) + 1;
}

OUTLAST_OWN_ static inline void outlast_exit_(unsigned long long section, unsigned long long exit)
{
    struct outlast_slot_ *slot = outlast_mine_;
    unsigned long long len, i;
    if (!slot)
        return;
    len = outlast_len_(slot);
    for (i = len; i-- > 0;)
        if (slot->frames[i].section == section) {
            struct outlast_left_ *left = &slot->left[outlast_count_(&slot->exits) % OUTLAST_LEFT_];
            left->run = 0;
            left->section = section;
            left->exit = exit;
            left->run = slot->frames[i].run;
            outlast_take_away_(slot, i, len);
            return;
        }
}

/* The thread enters the section. */
OUTLAST_OWN_ static inline void outlast_section_enter(const struct outlast_section *section)
{
    outlast_enter_((unsigned long long)section, ~0ULL, 0);
}

/* It leaves the section, by this one of its exits; nothing if it is not in it. */
OUTLAST_OWN_ static inline void outlast_section_exit(const struct outlast_section *section, unsigned exit)
{
    outlast_exit_((unsigned long long)section, exit);
}

OUTLAST_OWN_ static inline void outlast_end_scope_(const struct outlast_section *const *section)
{
    outlast_section_exit(*section, 0);
}

/* The rest of the block is a section, which is left however the block is, but for longjmp. */
#define OUTLAST_SCOPE(name) OUTLAST_SCOPE_(name, __LINE__)
#define OUTLAST_SCOPE_(name, line) OUTLAST_SCOPE__(name, line)
#define OUTLAST_SCOPE__(name, line)                                                                               \
    static const struct outlast_section outlast_section_##line##_ = OUTLAST_SECTION(name);                        \
    __attribute__((cleanup(outlast_end_scope_), unused)) const struct outlast_section *outlast_scope_##line##_    \
        = (outlast_section_enter(&outlast_section_##line##_), &outlast_section_##line##_)

#ifdef OUTLAST_FUNCTIONS
/* What -finstrument-functions has each function call. */
__attribute__((no_instrument_function)) void __cyg_profile_func_enter(void *function, void *caller);
__attribute__((no_instrument_function)) void __cyg_profile_func_exit(void *function, void *caller);

void __cyg_profile_func_enter(void *function, void *caller)
{
    outlast_enter_((unsigned long long)function | OUTLAST_FUNCTION_, (unsigned long long)__builtin_frame_address(0),
                   (unsigned long long)caller);
}

void __cyg_profile_func_exit(void *function, void *caller)
{
    (void)caller;
    outlast_exit_((unsigned long long)function | OUTLAST_FUNCTION_, (unsigned long long)__builtin_return_address(0));
}
#endif

#ifdef __cplusplus
}
#endif

#endif
