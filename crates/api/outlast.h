/* outlast.h: for programs that want to take part in their own protection. None has to: outlast protects programs that know
 * nothing of it. Header only, C99 or C++, no library. Where the program is not protected every function says so, and does
 * nothing else. See outlast.h(3).
 *
 * Everything here may be called in a handler of a signal, and leaves errno alone. */
#ifndef OUTLAST_H
#define OUTLAST_H

#ifdef __cplusplus
extern "C" {
#endif

/* How the program came back: second argument of the function after a recovery. */
#define OUTLAST_ROLLED_BACK 1 /* the same process went back to its last commit, after a fatal signal */
#define OUTLAST_RESPAWNED 2   /* a new process, with the files and connections of the one that died */
#define OUTLAST_RESUMED 3     /* everything had died: files were opened again, connections are closed */

/* What `outlast_status` tells. The counts are those since the program's start, its last execve or its last `outlast resume`. */
struct outlast_status {
    unsigned long long commits;
    unsigned long long recoveries;
    /* Number of the last commit; they count on through execve and `outlast resume`. */
    unsigned long long last_commit;
    /* What is not preserved: bits, of which `outlast_degradation` has the names. */
    unsigned long long degradations;
};

/* The rest of the file but for the functions' first lines is how it works, and may change. */

static inline long outlast_ask_(long what, long a, long b, long c)
{
#if defined(__x86_64__) && defined(__linux__)
    /* prctl with an option that no kernel knows: EINVAL where outlast is not at the gate. */
    register long fourth __asm__("r10") = b;
    register long fifth __asm__("r8") = c;
    long result = 157;
    __asm__ volatile("syscall"
                     : "+a"(result)
                     : "D"(0x6c74754fL), "S"(what), "d"(a), "r"(fourth), "r"(fifth)
                     : "rcx", "r11", "memory");
    return result;
#else
    (void)what, (void)a, (void)b, (void)c;
    return -22;
#endif
}

#if defined(__x86_64__) && defined(__linux__)
/* Where the program's functions return to: outlast takes the thread back to where it was, or else the kernel does. */
__attribute__((naked, unused)) static void outlast_return_(void)
{
    __asm__("mov $157, %eax\n\t"
            "mov $0x6c74754f, %edi\n\t"
            "mov $7, %esi\n\t"
            "syscall\n\t"
            "mov $15, %eax\n\t"
            "syscall\n\t"
            "hlt");
}
#else
static inline void outlast_return_(void) {}
#endif

/* Is the program protected? 1 or 0; `*status` is filled either way, with zeros if not. `status` may be NULL. */
static inline int outlast_status(struct outlast_status *status)
{
    long values[4];
    int i, is_protected = 1;
    for (i = 0; i < 4; i++) {
        values[i] = outlast_ask_(i, 0, 0, 0);
        is_protected &= values[i] >= 0;
    }
    if (status) {
        status->commits = is_protected ? (unsigned long long)values[0] : 0;
        status->recoveries = is_protected ? (unsigned long long)values[1] : 0;
        status->degradations = is_protected ? (unsigned long long)values[2] : 0;
        status->last_commit = is_protected ? (unsigned long long)values[3] : 0;
    }
    return is_protected;
}

/* Commits now, after the function before a commit, if there is one. Returns the commit's number, which is above 0, also to
 * a program that is restored from there; 0: not protected. */
static inline unsigned long long outlast_commit(void)
{
    long number = outlast_ask_(4, 0, 0, 0);
    return number > 0 ? (unsigned long long)number : 0;
}

/* Has `function(argument)` called before every commit that is asked for, by `outlast_commit` or from outside, and every
 * periodic one; not before those that precede what others can see. One function a program, the last one counts; NULL: none.
 * 1: done; 0: not protected. */
static inline int outlast_before_commit(void (*function)(void *argument), void *argument)
{
    return outlast_ask_(5, (long)function, (long)argument, (long)outlast_return_) == 0;
}

/* Has `function(argument, how)` called after every recovery, before the thread that made the commit does anything else. The
 * rest as for `outlast_before_commit`. */
static inline int outlast_after_recovery(void (*function)(void *argument, int how), void *argument)
{
    return outlast_ask_(6, (long)function, (long)argument, (long)outlast_return_) == 0;
}

/* The name of a degradation, as `outlast ps` and the README have it, by the number of its bit; NULL if there is none. */
static inline const char *outlast_degradation(int bit)
{
    static const char *const names[] = {
        "threads",          "children",           "shared-mapping",     "no-io-uring",    "pid-changed",
        "store-full",       "vector-state",       "unknown-call",       "privileged-program",
        "unreadable-program", "trace-forbidden",  "no-tracker",         "descriptor-lost", "mapping-lost",
        "address-taken",    "kernel-object",      "foreign-abi",        "engine-error",   "signal-lost",
        "older-state",      "descriptor-limit",   "file-kept",          "input-lost",       "gs-used",
        "proc-hidden",      "control-group",      "memory-lock", "call-filter",
        "own-faults",       "reply-differs",      "output-differs",
    };
    return bit >= 0 && bit < (int)(sizeof names / sizeof *names) ? names[bit] : (const char *)0;
}

#ifdef __cplusplus
}
#endif

#endif
