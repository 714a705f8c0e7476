/* Knows nothing of sections: its functions are, by a compiler that has them tell of themselves or by breakpoints. Answers each line with its
 * number and the line.
 * functions FILE
 * work: calls its functions often; hang work, hang deep: stays in this function as long as the first byte of FILE, which it maps, is not 0, by
 * calls; thread FUNCTION: has a thread stay in it; jump: leaves a function by longjmp, and computes for 1.6 s behind that */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static volatile char *word;
static volatile long sum;
static jmp_buf back;

/* By calls, so that between two of them it never stays. */
__attribute__((noinline, no_instrument_function)) static void stay(void)
{
    while (*word)
        getppid();
}

__attribute__((noinline)) int deep(int n, const char *stays)
{
    if (n > 0)
        return deep(n - 1, stays) + 1;
    if (!strcmp(stays, "deep"))
        stay();
    return sum++ & 1;
}

__attribute__((noinline)) int work(int n, const char *stays)
{
    if (n % 3 == 0)
        return -1;
    for (int i = 0; i < 100; i++)
        sum += i * n;
    if (!strcmp(stays, "work"))
        stay();
    if (n % 3 == 1)
        return deep(n % 40, stays);
    return sum > 7;
}

__attribute__((noinline)) void leave(int n)
{
    if (n)
        longjmp(back, 1);
    sum++;
}

__attribute__((noinline, no_instrument_function)) static void compute(double ms)
{
    struct timespec t;
    double end = 0;
    do {
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        end = end ? end : t.tv_sec * 1e3 + t.tv_nsec / 1e6 + ms;
    } while (t.tv_sec * 1e3 + t.tv_nsec / 1e6 < end);
}

__attribute__((no_instrument_function)) static void *thread(void *stays)
{
    for (int i = 0; i < 1000; i++)
        work(i, "");
    work(31, stays);
    return NULL;
}

int main(int argc, char **argv)
{
    int fd = open(argv[argc - 1], O_RDWR);
    word = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    if (fd < 0 || word == MAP_FAILED)
        return 1;
    close(fd);
    char line[100];
    for (int n = 1; fgets(line, sizeof line, stdin); n++) {
        line[strcspn(line, "\n")] = 0;
        if (!strcmp(line, "work"))
            for (int i = 0; i < 300; i++) {
                work(i, "");
                leave(0);
            }
        if (!strncmp(line, "hang ", 5))
            work(31, line + 5);
        if (!strncmp(line, "thread ", 7)) {
            static char stays[100];
            pthread_t other;
            if (pthread_create(&other, NULL, thread, strcpy(stays, line + 7)))
                return 1;
            pthread_detach(other);
        }
        if (!strcmp(line, "jump")) {
            if (!setjmp(back))
                leave(1);
            compute(1600);
        }
        printf("%d %s\n", n, line);
        fflush(stdout);
    }
    return 3;
}
