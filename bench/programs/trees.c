/* What processes of a tree cost: trees RESULT ROUNDS MEGABYTES. RESULT gets "store NANOSECONDS" for a write to memory that another process
 * shares, "child NANOSECONDS" for a small child that is made, becomes a program and is waited for, and "fork NANOSECONDS" until a
 * fork returns in a process of MEGABYTES. */
#include "measure.h"

#include <sys/wait.h>

enum { STORES = 2000, ROUNDS_MAX = 64 };

static double middle(double *values, int count)
{
    qsort(values, count, sizeof *values, by_value);
    return values[count / 2];
}

static void await(pid_t child)
{
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
        fail("child");
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    int rounds = atoi(argv[2]);
    size_t len = (size_t)atoi(argv[3]) << 20;
    static double stores[ROUNDS_MAX], children[ROUNDS_MAX], forks[ROUNDS_MAX];
    if (rounds < 1 || rounds > ROUNDS_MAX)
        return 2;
    visible_byte();
    volatile long *shared = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        fail("mmap");
    int ends[2];
    char byte;
    if (pipe(ends))
        fail("pipe");
    pid_t sharer = fork();
    if (sharer == 0) {
        close(ends[1]);
        _exit(read(ends[0], &byte, 1) != 0);
    }
    close(ends[0]);
    for (int round = 0; round < rounds; round++) {
        uint64_t began = now_ns();
        for (int i = 0; i < STORES; i++)
            ++*shared;
        stores[round] = (double)(now_ns() - began) / STORES;
        began = now_ns();
        pid_t child = fork();
        if (child == 0) {
            execl("/bin/true", "true", (char *)0);
            _exit(1);
        }
        await(child);
        children[round] = now_ns() - began;
    }
    close(ends[1]);
    await(sharer);
    const char *memory = resident(len);
    for (int round = 0; round < rounds; round++) {
        uint64_t began = now_ns();
        pid_t child = fork();
        if (child == 0)
            _exit(memory[round * 4096] != (char)(round * 4096 + 1));
        forks[round] = now_ns() - began;
        await(child);
    }
    char text[200];
    snprintf(text, sizeof text, "store %.1f\nchild %.1f\nfork %.1f\n", middle(stores, rounds), middle(children, rounds),
             middle(forks, rounds));
    publish(argv[1], text);
    return 0;
}
