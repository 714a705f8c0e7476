/* A program whose memory a collector looks after (Boehm's): collected ROUNDS [incremental]. Two threads build trees, throw most of them
 * away and look at the rest; the collector stops the other thread by signals, reads registers and stacks, and in increments finds what was
 * written since by protecting pages. */
#define GC_THREADS
#include "tell.h"
#include <gc.h>
#include <pthread.h>

struct tree {
    struct tree *left, *right;
    long value;
};

enum { KEPT = 64 };

static struct tree *make(int depth, long value)
{
    struct tree *tree = GC_MALLOC(sizeof *tree);
    must(tree != 0, "memory");
    tree->value = value;
    if (depth) {
        tree->left = make(depth - 1, value * 2);
        tree->right = make(depth - 1, value * 2 + 1);
    }
    return tree;
}

static long sum(const struct tree *tree)
{
    return tree ? tree->value + sum(tree->left) + sum(tree->right) : 0;
}

/* What is kept hangs on a node that is found by the stack alone. */
static void *work(void *argument)
{
    long round = (long)argument;
    struct tree **kept = GC_MALLOC(KEPT * sizeof *kept), *rest = 0;
    for (int i = 0; i < 4 * KEPT; i++) {
        struct tree *tree = make(6, round + i);
        if (i % 4 == 0)
            kept[i / 4] = tree;
        else if (i % 16 == 1)
            tree->left = rest, rest = tree;
    }
    long all = sum(rest);
    for (int i = 0; i < KEPT; i++)
        all += sum(kept[i]);
    return (void *)all;
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 50;
    GC_INIT();
    if (argc > 2)
        GC_enable_incremental();
    struct tree *whole = make(10, 1);
    for (long round = 0; round < rounds; round++) {
        pthread_t thread;
        void *theirs;
        must(!GC_pthread_create(&thread, 0, work, (void *)(round + 1000)), "a thread");
        long mine = (long)work((void *)round);
        must(!GC_pthread_join(thread, &theirs), "its end");
        if (round % 8 == 7)
            GC_gcollect();
        tell("%ld: %ld %ld %ld\n", round, mine, (long)theirs, sum(whole));
    }
    must(GC_get_gc_no() > 2, "collections");
    return 0;
}
