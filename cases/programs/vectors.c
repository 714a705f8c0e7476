/* Keeps values in the vector registers across system calls and long computations, with AVX-512 or AVX2.
 * Nothing but the registers holds them: what a restore does not bring back is lost. */
#include "tell.h"
#include <cpuid.h>
#include <sys/syscall.h>

static char line[9 * 1];

/* One step: `registers` are loaded, a long computation runs in them, a line is written, and they are stored,
 * all without touching memory in between but for the line. */
#define STEP(WIDTH, REG, LOAD, ADD, ROUNDS)                                                                            \
    __asm__ volatile(LOAD " (%[in])," REG "0\n" LOAD " " WIDTH "(%[in])," REG "1\n" LOAD " 2*" WIDTH "(%[in])," REG    \
                     "14\n" LOAD " 3*" WIDTH "(%[in])," REG "15\n"                                                     \
                     "mov %[rounds],%%r12\n"                                                                           \
                     "1:\n" ADD " " REG "0," REG "1," REG "0\n" ADD " " REG "1," REG "14," REG "1\n" ADD " " REG       \
                     "14," REG "15," REG "14\n" ADD " " REG "15," REG "0," REG "15\n"                                  \
                     "dec %%r12\njnz 1b\n"                                                                             \
                     "mov %[nr],%%eax\nmov $1,%%edi\nmov %[line],%%rsi\nmov $9,%%edx\nsyscall\n"                       \
                     "mov %[rounds],%%r12\n"                                                                           \
                     "2:\n" ADD " " REG "0," REG "15," REG "0\n" ADD " " REG "1," REG "0," REG "1\n"                   \
                     "dec %%r12\njnz 2b\n" LOAD " " REG "0,(%[in])\n" LOAD " " REG "1," WIDTH "(%[in])\n" LOAD " " REG \
                     "14,2*" WIDTH "(%[in])\n" LOAD " " REG "15,3*" WIDTH "(%[in])\n"                                  \
                     "mov %%rax,%[done]\n"                                                                             \
                     : [done] "=&r"(done)                                                                              \
                     : [in] "r"(lanes), [line] "r"(line), [nr] "i"(SYS_write), [rounds] "r"((long)(ROUNDS))            \
                     : "rax", "rcx", "rdx", "rdi", "rsi", "r11", "r12", "memory", "xmm0", "xmm1", "xmm14", "xmm15")

static int has_avx512(void)
{
    unsigned a, b, c, d;
    return __builtin_cpu_supports("avx512f") && __get_cpuid_count(7, 0, &a, &b, &c, &d);
}

int main(int argc, char **argv)
{
    int steps = argc > 1 ? atoi(argv[1]) : 500, rounds = argc > 2 ? atoi(argv[2]) : 20000;
    static uint64_t lanes[32] __attribute__((aligned(64)));
    for (int i = 0; i < 32; i++)
        lanes[i] = i * 0x9e3779b97f4a7c15;
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2")) {
        tell("no AVX2 here\n");
        return 0;
    }
    int wide = has_avx512();
    for (int i = 0; i < steps; i++) {
        long done;
        char number[16];
        snprintf(number, sizeof number, "%08d\n", i);
        memcpy(line, number, 9);
        if (wide)
            STEP("64", "%%zmm", "vmovdqu64", "vpaddq", rounds);
        else
            STEP("32", "%%ymm", "vmovdqu", "vpaddq", rounds);
        must(done == 9, "write");
        tell("%016lx\n", mix(0xcbf29ce484222325, lanes, sizeof lanes));
    }
    return 0;
}
