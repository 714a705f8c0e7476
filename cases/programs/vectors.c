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

#define ALL "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31"
#define MASKS "1,2,3,4,5,6,7"
#define SUM(K, A, B, C, D)                                                                                             \
    "vpaddq %%zmm" A ",%%zmm" C ",%%zmm" A "%{%%k" K "%}\nvpaddq %%zmm" B ",%%zmm" A ",%%zmm" D "%{%%k" K "%}\n"        \
    "vpaddq %%zmm" D ",%%zmm" B ",%%zmm" C "\nvpxorq %%zmm" C ",%%zmm" D ",%%zmm" B "\n"

/* The same with all that AVX-512 has: 32 registers, each of which takes part in the sums under one of seven masks, which change. */
static long wide_step(uint64_t (*all)[8], uint64_t *masks, long rounds)
{
    long done;
    __asm__ volatile(".irp n," ALL "\nvmovdqu64 \\n*64(%[all]),%%zmm\\n\n.endr\n"
                     ".irp n," MASKS "\nkmovq \\n*8(%[masks]),%%k\\n\n.endr\n"
                     "mov %[rounds],%%r12\n"
                     "1:\n" SUM("1", "1", "9", "17", "25") SUM("2", "2", "10", "18", "26") SUM("3", "3", "11", "19", "27")
                     SUM("4", "4", "12", "20", "28") SUM("5", "5", "13", "21", "29") SUM("6", "6", "14", "22", "30")
                     SUM("7", "7", "15", "23", "31") SUM("1", "0", "8", "16", "24")
                     "kaddq %%k1,%%k7,%%k1\nkxorq %%k2,%%k1,%%k2\nkaddq %%k3,%%k2,%%k3\nkxorq %%k4,%%k3,%%k4\n"
                     "kaddq %%k5,%%k4,%%k5\nkxorq %%k6,%%k5,%%k6\nkaddq %%k7,%%k6,%%k7\n"
                     "dec %%r12\njnz 1b\n"
                     "mov %[nr],%%eax\nmov $1,%%edi\nmov %[line],%%rsi\nmov $9,%%edx\nsyscall\n"
                     ".irp n," ALL "\nvmovdqu64 %%zmm\\n,\\n*64(%[all])\n.endr\n"
                     ".irp n," MASKS "\nkmovq %%k\\n,\\n*8(%[masks])\n.endr\n"
                     "mov %%rax,%[done]\n"
                     : [done] "=&r"(done)
                     : [all] "r"(all), [masks] "r"(masks), [line] "r"(line), [nr] "i"(SYS_write), [rounds] "r"(rounds)
                     : "rax", "rcx", "rdx", "rdi", "rsi", "r11", "r12", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4",
                       "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
    return done;
}

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
    static uint64_t all[32][8] __attribute__((aligned(64))), masks[8];
    for (int i = 0; i < 32 * 8; i++)
        all[i / 8][i % 8] = (i + 1) * 0x9e3779b97f4a7c15;
    for (int i = 0; i < 8; i++)
        masks[i] = (i + 3) * 0xd1342543de82ef95;
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
        if (wide && __builtin_cpu_supports("avx512bw")) {
            must(wide_step(all, masks, rounds / 8) == 9, "write");
            tell("%016lx %016lx\n", mix(0xcbf29ce484222325, all, sizeof all), mix(0xcbf29ce484222325, masks, sizeof masks));
        }
        tell("%016lx\n", mix(0xcbf29ce484222325, lanes, sizeof lanes));
    }
    return 0;
}
