// Loaded before a program: checkpoints of it as others make them, by a timer, for as long as CHECKPOINT says how.
//   fork:  a child is kept that shares all pages until they are written, and replaces the one before (a shadow process)
//   dump:  every page that is there is copied, and copied back when a signal is to end the program (SIGSEGV and its like): it goes on
//          from there, with whatever the kernel has of it as it is now, but for descriptors that it had not then: they are closed
//   count: nothing is kept; counted is what was written, by arming all pages anew
// At the program's end the file CHECKPOINT_RESULT has a line for each checkpoint: what it took in nanoseconds, the pages that were
// there and those that were written, each of these as data, bss, heap, stack, data of libraries, other.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "written.h"

enum { PAGE = 4096, KINDS = 6, MOST = 4096, MAPS = 1 << 20, FRAMES = 1 << 16, HANDLER_STACK = 1 << 16, PIECES = 1 << 16, DESCRIPTORS = 1 << 16 };
enum kind { DATA, BSS, HEAP, STACK, LIBRARY, OTHER };

struct line {
    uint64_t ns;
    uint32_t present[KINDS], written[KINDS];
};

// Not among what is counted and copied: in pages of its own.
static struct {
    struct line lines[MOST];
    unsigned made;
    size_t copied, piece_count;
    // What was copied, in the order of the copy, and the registers from which the program is to go on: where the kernel put them.
    struct iovec pieces[PIECES];
    void *registers;
    uint8_t is_open[DESCRIPTORS];
} __attribute__((aligned(PAGE))) kept;
static const char *how, *result;
static char *maps, *copy, *handler_stack;
static uint64_t *frames;
static size_t copy_len;
static pid_t program, shadow;
static int faults = -1, pagemap = -1;
static char own[4096];

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}

// Neither malloc nor stdio: the signal may come anywhere.
static size_t read_maps(void) {
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    size_t len = 0;
    ssize_t got;
    while (fd >= 0 && len < MAPS - 1 && (got = read(fd, maps + len, MAPS - 1 - len)) > 0)
        len += got;
    close(fd);
    maps[len] = 0;
    return len;
}

static uint64_t hex(const char **at) {
    uint64_t n = 0;
    for (;; ++*at) {
        char c = **at;
        if (c >= '0' && c <= '9')
            n = n << 4 | (c - '0');
        else if (c >= 'a' && c <= 'f')
            n = n << 4 | (c - 'a' + 10);
        else
            return n;
    }
}

static int is_ours(uint64_t begin, uint64_t end) {
    const void *all[] = {maps, copy, frames, handler_stack, &kept};
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
        if (begin <= (uint64_t)all[i] && (uint64_t)all[i] < end)
            return 1;
    return 0;
}

// What a shadow process shares needs no look at the mappings.
static void keep_shadow(void) {
    pid_t before = shadow;
    // No signal at its end, and nobody who waits for any child gets it.
    pid_t child = syscall(SYS_clone, 0, 0, 0, 0, 0);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_SETMASK, &all, NULL);
        for (;;)
            pause();
    }
    shadow = child > 0 ? child : 0;
    if (before) {
        kill(before, SIGKILL);
        waitpid(before, NULL, __WALL);
    }
}

// Pages that are there, into the line and, if they are to be kept, into the copy.
static void look_at(uint64_t begin, uint64_t end, enum kind kind, struct line *line, int keep) {
    for (uint64_t at = begin; at < end;) {
        size_t count = (end - at) / PAGE < FRAMES ? (end - at) / PAGE : FRAMES;
        ssize_t got = pread(pagemap, frames, count * 8, at / PAGE * 8);
        if (got <= 0)
            return;
        count = got / 8;
        for (size_t i = 0; i < count;) {
            size_t run = i;
            while (run < count && frames[run] >> 62)
                run++;
            if (run == i) {
                i++;
                continue;
            }
            size_t len = (run - i) * PAGE;
            line->present[kind] += run - i;
            if (keep && kept.copied + len <= copy_len && kept.piece_count < PIECES) {
                struct iovec to = {copy + kept.copied, len}, from = {(void *)(at + i * PAGE), len};
                process_vm_readv(program, &to, 1, &from, 1, 0);
                kept.pieces[kept.piece_count++] = from;
                kept.copied += len;
            }
            i = run;
        }
        at += count * PAGE;
    }
}

// Written since the last time: they are armed anew in the same call. The first time all are.
static void look_for_written(uint64_t begin, uint64_t end, enum kind kind, struct line *line) {
    struct page_region found[64];
    struct scan arg = {
        .size = sizeof arg, .flags = SCAN_ARM | SCAN_CHECK, .start = begin, .end = end,
        .vec = (uint64_t)found, .vec_len = 64, .category_mask = IS_WRITTEN | IS_PRESENT, .return_mask = IS_WRITTEN,
    };
    while (arg.start < end) {
        long n = ioctl(pagemap, SCAN, &arg);
        if (n < 0)
            return;
        for (long i = 0; i < n; i++)
            line->written[kind] += (found[i].end - found[i].start) / PAGE;
        arg.start = arg.walk_end;
    }
}

static void each_mapping(struct line *line, int keep, int arm) {
    read_maps();
    enum kind before = OTHER;
    uint64_t before_end = 0, arming = 0;
    for (const char *at = maps; *at;) {
        uint64_t begin = hex(&at);
        at++;
        uint64_t end = hex(&at);
        const char *rights = ++at, *end_of_line = strchr(at, '\n');
        size_t rest = end_of_line ? (size_t)(end_of_line - at) : strlen(at);
        char path[512];
        const char *slash = memchr(at, '/', rest), *bracket = memchr(at, '[', rest), *from = slash ? slash : bracket;
        size_t len = from ? rest - (from - at) : 0;
        len = len < sizeof path ? len : sizeof path - 1;
        memcpy(path, from ? from : "", len);
        path[len] = 0;
        at += rest + (end_of_line != NULL);
        if (rights[1] != 'w' || rights[3] != 'p' || is_ours(begin, end))
            continue;
        enum kind kind = OTHER;
        if (slash)
            kind = strcmp(path, own) ? LIBRARY : DATA;
        else if (bracket)
            kind = !strcmp(path, "[heap]") ? HEAP : !strncmp(path, "[stack", 6) ? STACK : OTHER;
        else if (begin == before_end && (before == DATA || before == LIBRARY))
            kind = before == DATA ? BSS : LIBRARY;
        (before = kind), (before_end = end);
        if (!arm) {
            look_at(begin, end, kind, line, keep);
            continue;
        }
        struct uffdio_register registration = {.range = {begin, end - begin}, .mode = UFFDIO_REGISTER_MODE_WP};
        ioctl(faults, UFFDIO_REGISTER, &registration);
        uint64_t began = now();
        look_for_written(begin, end, kind, line);
        arming += now() - began;
    }
    if (arm)
        line->ns = arming;
}

static void note_descriptors(void) {
    char entries[4096];
    int fd = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    long len;
    memset(kept.is_open, 0, sizeof kept.is_open);
    while (fd >= 0 && (len = syscall(SYS_getdents64, fd, entries, sizeof entries)) > 0)
        for (char *at = entries; at < entries + len; at += *(uint16_t *)(at + 16)) {
            unsigned number = 0;
            for (const char *name = at + 19; *name >= '0' && *name <= '9'; name++)
                number = number * 10 + *name - '0';
            if (number < DESCRIPTORS && at[19] != '.')
                kept.is_open[number] = 1;
        }
    if (fd >= 0 && fd < DESCRIPTORS)
        kept.is_open[fd] = 0;
    close(fd);
}

// A server that is told of a connection that it does not know ends at once, again and again.
static void close_new_descriptors(void) {
    for (unsigned fd = 0, end; fd < DESCRIPTORS; fd = end + 1) {
        for (end = fd; end < DESCRIPTORS && !kept.is_open[end]; end++)
            ;
        if (end > fd)
            syscall(SYS_close_range, fd, end - 1, 0);
    }
}

static void checkpoint(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info;
    if (kept.made == MOST)
        return;
    struct line *line = &kept.lines[kept.made++];
    uint64_t began = now();
    if (*how == 'f')
        keep_shadow();
    else if (*how == 'd')
        kept.copied = kept.piece_count = 0, kept.registers = context, note_descriptors(), each_mapping(line, 1, 0);
    else
        each_mapping(line, 0, 0), each_mapping(line, 0, 1);
    if (*how != 'c')
        line->ns = now() - began;
}

// The program was to end. Its stack is one of the pieces: this runs on another one.
static void go_back(int signal) {
    (void)signal;
    size_t from = 0;
    for (size_t i = 0; i < kept.piece_count; i++) {
        struct iovec back = {copy + from, kept.pieces[i].iov_len};
        // Of what is not mapped any more nothing is written.
        process_vm_writev(program, &back, 1, &kept.pieces[i], 1, 0);
        from += kept.pieces[i].iov_len;
    }
    close_new_descriptors();
    // As the handler in which it was copied would return.
    __asm__ volatile("mov %0, %%rsp\n\tmov $15, %%eax\n\tsyscall" : : "r"(kept.registers) : "memory");
    __builtin_unreachable();
}

static void go_back_on_fatal_signals(void) {
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
    stack_t stack = {.ss_sp = handler_stack, .ss_size = HANDLER_STACK};
    struct sigaction action = {.sa_handler = go_back, .sa_flags = SA_ONSTACK};
    sigfillset(&action.sa_mask);
    int failed = sigaltstack(&stack, NULL);
    for (unsigned i = 0; i < sizeof fatal / sizeof *fatal; i++)
        failed |= sigaction(fatal[i], &action, NULL);
    if (failed)
        _exit(99);
}

static void *room(size_t len) {
    void *at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

__attribute__((constructor)) static void begin(void) {
    const char *ms = getenv("CHECKPOINT_MS");
    how = getenv("CHECKPOINT"), result = getenv("CHECKPOINT_RESULT");
    if (!how || !ms || !result)
        return;
    // Those that it executes are others.
    unsetenv("LD_PRELOAD");
    program = getpid();
    ssize_t len = readlink("/proc/self/exe", own, sizeof own - 1);
    own[len > 0 ? len : 0] = 0;
    copy_len = (size_t)4 << 30;
    maps = room(MAPS), frames = room(FRAMES * 8), copy = room(copy_len), handler_stack = room(HANDLER_STACK);
    pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (*how == 'c') {
        faults = syscall(SYS_userfaultfd, O_CLOEXEC);
        struct uffdio_api api = {.api = UFFD_API, .features = WRITES_ARE_NOTED | UNPOPULATED};
        if (faults < 0 || ioctl(faults, UFFDIO_API, &api)) {
            perror("libcheckpoint: userfaultfd");
            _exit(99);
        }
    }
    if (!maps || !frames || !copy || !handler_stack || pagemap < 0)
        _exit(99);
    struct sigaction action = {.sa_sigaction = checkpoint, .sa_flags = SA_RESTART | SA_SIGINFO};
    // What is to end the program waits until a copy is whole.
    sigfillset(&action.sa_mask);
    sigaction(SIGRTMAX - 3, &action, NULL);
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMAX - 3};
    if (*how == 'd')
        go_back_on_fatal_signals();
    timer_t timer;
    uint64_t ns = strtoull(ms, NULL, 10) * 1000000;
    struct timespec every = {ns / 1000000000, ns % 1000000000};
    struct itimerspec times = {every, every};
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &times, NULL))
        _exit(99);
}

__attribute__((destructor)) static void end(void) {
    if (!how || !result || getpid() != program)
        return;
    if (shadow)
        kill(shadow, SIGKILL);
    FILE *file = fopen(result, "w");
    if (!file)
        return;
    for (unsigned i = 0; i < kept.made; i++) {
        fprintf(file, "%llu", (unsigned long long)kept.lines[i].ns);
        for (unsigned k = 0; k < KINDS; k++)
            fprintf(file, " %u", kept.lines[i].present[k]);
        for (unsigned k = 0; k < KINDS; k++)
            fprintf(file, " %u", kept.lines[i].written[k]);
        fputc('\n', file);
    }
    fclose(file);
}
