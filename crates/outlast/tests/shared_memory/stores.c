// Three workers write to a list of their own, and all to one in common, each in its turn, with the instructions that compilers and libc
// use: string instructions and vectors over the ends of pages, bits, atomic operations on one and two words. Prints what is there.
#define _GNU_SOURCE
#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORKERS = 3, ROUNDS = 60, LEN = 9000 };

static struct shared {
    unsigned turn;
    uint32_t words[64];
    __int128 pair __attribute__((aligned(16)));
    char own[WORKERS][LEN];
    char common[LEN];
} *shared;

static void repeat_byte(char *to, char byte, long n)
{
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(byte) : "memory");
}

static void copy_words(char *to, const char *from, long n)
{
    __asm__ volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
}

// Overlaps: each byte is copied onto the next.
static void spread(char *to, long n)
{
    const char *from = to;
    to++;
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
}

static void advance_pair(void)
{
    uint64_t low = (uint64_t)shared->pair, high = (uint64_t)(shared->pair >> 64);
    uint64_t new_low = low + 3, new_high = high + 5;
    unsigned char done;
    do {
        new_low = low + 3;
        new_high = high + 5;
        __asm__ volatile("lock cmpxchg16b %0; setz %1"
                         : "+m"(shared->pair), "=q"(done), "+a"(low), "+d"(high)
                         : "b"(new_low), "c"(new_high));
    } while (!done);
}

static unsigned long sum(const void *data, size_t len)
{
    unsigned long hash = 5381;
    for (size_t i = 0; i < len; i++)
        hash = hash * 33 + ((const unsigned char *)data)[i];
    return hash;
}

static void store(int me, int round)
{
    char *own = shared->own[me], from[LEN];
    for (int i = 0; i < LEN; i++)
        from[i] = i * 7 + round + me;
    int at = round * 61 % 4000;
    repeat_byte(own + at, round, 4500);
    copy_words(shared->common + at, from, 500);
    spread(own + 4000 + round, 200);
    memcpy(own + at + 1000, from, 700);
    _mm_storeu_si128((__m128i *)(own + 4090 + round % 7), _mm_set1_epi8(round + 1));
    if (__builtin_cpu_supports("avx"))
        __asm__ volatile("vmovd %1, %%xmm1; vpshufd $0, %%xmm1, %%xmm1; vinsertf128 $1, %%xmm1, %%ymm1, %%ymm1;"
                         "vmovdqu %%ymm1, (%0)" : : "r"(shared->common + 4080 + round % 11), "r"(round * 77) : "xmm1", "memory");
    uint32_t *word = &shared->words[round % 64];
    __atomic_fetch_add(word, 7, __ATOMIC_SEQ_CST);
    __atomic_fetch_or(word, 0x100, __ATOMIC_SEQ_CST);
    __atomic_exchange_n(&shared->words[(round + 5) % 64], *word + me, __ATOMIC_SEQ_CST);
    long bit = round * 3;
    __asm__ volatile("lock btsq %1, %0; lock btcq %2, %0" : "+m"(shared->words) : "r"(bit), "r"(bit + 11) : "memory");
    *(volatile uint8_t *)(own + 11) -= round;
    *(volatile uint16_t *)(own + 4095) += 3 * round;
    *(volatile uint32_t *)(own + 17) <<= 1;
    *(volatile uint64_t *)(own + 24) ^= 0x123456789abcdef;
    advance_pair();
}

int main(void)
{
    shared = mmap(0, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 1;
    pid_t workers[WORKERS];
    for (int me = 0; me < WORKERS; me++) {
        if (!(workers[me] = fork())) {
            for (int round = 0; round < ROUNDS; round++) {
                while (__atomic_load_n(&shared->turn, __ATOMIC_ACQUIRE) % WORKERS != (unsigned)me)
                    usleep(100);
                store(me, round);
                if (round % 10 == 9) {
                    printf("%d %d %lx\n", me, round, sum(shared, sizeof *shared));
                    fflush(stdout);
                }
                __atomic_add_fetch(&shared->turn, 1, __ATOMIC_RELEASE);
            }
            _exit(me);
        }
    }
    for (int me = 0; me < WORKERS; me++)
        waitpid(workers[me], 0, 0);
    printf("%lx %u\n", sum(shared, sizeof *shared), shared->turn);
    return 0;
}
