/* One thread reads a folder into a long buffer again and again, while another writes behind what the reads write, now here, now there:
 * short_reads ROUNDS. What that has written is looked at before and after each line. */
#define _GNU_SOURCE
#include "tell.h"
#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>

enum { PAGE = 4096, PAGES = 256, WRITES = 3, READS = 20 };

static _Alignas(PAGE) char buffer[PAGES][PAGE];
static uint64_t expected[PAGES];
static pthread_barrier_t meeting;
static int rounds;

static void meet(void)
{
    int r = pthread_barrier_wait(&meeting);
    must(!r || r == PTHREAD_BARRIER_SERIAL_THREAD, "barrier");
}

static volatile uint64_t *behind(int page)
{
    return (volatile uint64_t *)&buffer[page][PAGE / 2];
}

static void *write_behind(void *unused)
{
    uint64_t state = 88172645463325252;
    for (int round = 1; round <= rounds; round++) {
        meet();
        for (int n = 0; n < WRITES; n++) {
            for (uint64_t pause = next(&state) % 20000; pause; pause--)
                __asm__ volatile("");
            int page = 1 + next(&state) % (PAGES - 1);
            *behind(page) = expected[page] = next(&state);
        }
        meet();
    }
    return unused;
}

static void look(int round, const char *when)
{
    for (int page = 1; page < PAGES; page++)
        if (*behind(page) != expected[page])
            tell("%s line %d page %d holds %lx\n", when, round, page, *behind(page));
}

int main(int argc, char **argv)
{
    rounds = argc > 1 ? atoi(argv[1]) : 100;
    int fd = open(".", O_RDONLY | O_DIRECTORY);
    must(fd >= 0, "folder");
    must(!pthread_barrier_init(&meeting, 0, 2), "barrier");
    pthread_t writer;
    must(!pthread_create(&writer, 0, write_behind, 0), "thread");
    for (int round = 1; round <= rounds; round++) {
        look(round - 1, "after");
        meet();
        for (int n = 0; n < READS; n++) {
            long r = lseek(fd, 0, SEEK_SET) ? -1 : syscall(SYS_getdents64, fd, buffer, sizeof buffer);
            must(r > 0 && r < PAGE / 2, "read");
        }
        meet();
        look(round, "before");
        tell("round %d\n", round);
    }
    must(!pthread_join(writer, 0), "join");
    return 0;
}
