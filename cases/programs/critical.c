/* Restartable sequences (rseq): critical COUNT ROUNDS. Two threads count in sections that the kernel starts anew when it interrupts them, in
 * counters of which there is one for each processor, without a lock: each must have counted exactly as often as it was asked to. */
#define _GNU_SOURCE
#include "tell.h"
#include <pthread.h>
#include <stddef.h>
#include <sys/rseq.h>

enum { PROCESSORS = 4096, THREADS = 2 };

static struct {
    long count;
    char apart[120];
} counter[PROCESSORS];

static volatile struct rseq *own(void)
{
    return (volatile struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
}

/* Adds one to the counter of the processor that it runs on; 0: it was interrupted. */
static int add(volatile struct rseq *rseq, unsigned processor)
{
    asm goto(".pushsection __rseq_cs, \"aw\"\n\t"
             ".balign 32\n"
             "3:\n\t"
             ".long 0, 0\n\t"
             ".quad 1f, 2f - 1f, 4f\n\t"
             ".popsection\n\t"
             "leaq 3b(%%rip), %%rax\n\t"
             "movq %%rax, %c[section](%[rseq])\n"
             "1:\n\t"
             "cmpl %[processor], %c[number](%[rseq])\n\t"
             "jnz %l[other]\n\t"
             "movq (%[count]), %%rax\n\t"
             "movl $40, %%ecx\n"
             /* Long enough to be interrupted. */
             "5:\n\t"
             "pause\n\t"
             "decl %%ecx\n\t"
             "jnz 5b\n\t"
             "addq $1, %%rax\n\t"
             "movq %%rax, (%[count])\n"
             "2:\n\t"
             ".pushsection .text.unlikely, \"ax\"\n\t"
             /* The signature, in an instruction that nothing executes. */
             ".byte 0x0f, 0xb9, 0x3d\n\t"
             ".long 0x53053053\n"
             "4:\n\t"
             "jmp %l[other]\n\t"
             ".popsection"
             :
             : [rseq] "r"(rseq), [processor] "r"(processor), [count] "r"(&counter[processor].count),
               [section] "i"(offsetof(struct rseq, rseq_cs)), [number] "i"(offsetof(struct rseq, cpu_id))
             : "rax", "rcx", "memory", "cc"
             : other);
    return 1;
other:
    return 0;
}

static void *count(void *often)
{
    volatile struct rseq *rseq = own();
    for (long left = (long)often; left;) {
        unsigned processor = rseq->cpu_id_start;
        must(processor < PROCESSORS, "the processor");
        left -= add(rseq, processor);
    }
    return 0;
}

int main(int argc, char **argv)
{
    long often = argc > 1 ? atol(argv[1]) : 20000, rounds = argc > 2 ? atol(argv[2]) : 10;
    must(__rseq_size != 0, "rseq");
    for (long round = 1; round <= rounds; round++) {
        pthread_t thread;
        must(!pthread_create(&thread, 0, count, (void *)often), "pthread_create");
        count((void *)often);
        must(!pthread_join(thread, 0), "pthread_join");
        long sum = 0;
        for (int i = 0; i < PROCESSORS; i++)
            sum += counter[i].count;
        tell("%ld: %ld of %ld\n", round, sum, round * often * THREADS);
    }
    return 0;
}
