/* Threads that the kernel tells their id, made by clone itself: births ROUNDS. All on one processor, so that a thread's maker goes on
 * for a while before the thread has its first turn. */
#define _GNU_SOURCE
#include "tell.h"
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum { LINES = 12, STACK = 65536 };
static _Atomic(pid_t) told, own;
static pid_t seen;

/* Has its maker's thread-local storage, and therefore uses none. */
static int begin(void *arg)
{
    (void)arg;
    seen = atomic_load(&told);
    atomic_store(&own, (pid_t)syscall(SYS_gettid));
    syscall(SYS_futex, &own, FUTEX_WAKE, 1, 0, 0, 0);
    syscall(SYS_exit, 0);
    return 0;
}

static void await(_Atomic(pid_t) *word, int (*is_so)(pid_t))
{
    for (pid_t now; !is_so(now = atomic_load(word));)
        syscall(SYS_futex, word, FUTEX_WAIT, now, 0, 0, 0);
}

static int has_begun(pid_t its_own)
{
    return its_own != 0;
}

static int has_ended(pid_t its_word)
{
    return its_word == 0;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 50;
    const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
    cpu_set_t set;
    must(!sched_getaffinity(0, sizeof set, &set), "get affinity");
    int first = 0;
    while (!CPU_ISSET(first, &set))
        first++;
    CPU_ZERO(&set);
    CPU_SET(first, &set);
    must(!sched_setaffinity(0, sizeof set, &set), "affinity");
    char *stack = mmap(0, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(stack != MAP_FAILED, "stack");
    for (int round = 0; round < rounds; round++) {
        atomic_store(&told, 0);
        atomic_store(&own, 0);
        /* The kernel writes to the same word when the thread is born and when it has ended. */
        pid_t id = clone(begin, stack + STACK, flags | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID, 0, 0, 0, &told);
        must(id > 0, "clone");
        for (int line = 0; line < LINES; line++)
            tell("%d: line %d\n", round, line);
        await(&own, has_begun);
        await(&told, has_ended);
        tell("%d: own id %s, told %s\n", round, own == id ? "right" : "wrong", seen == id ? "right" : "wrong");
    }
    return 0;
}
