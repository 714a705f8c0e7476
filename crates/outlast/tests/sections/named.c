/* Works in sections that have names, and answers each line with its number and the line.
 * named FILE
 * work: enters and leaves all sections often; long: computes 0.3 s in one; hang SECTION: stays in it as long as the first byte of FILE, which it
 * maps, is not 0; thread: has a thread stay in one; threads, handlers: others
 * and handlers of signals are in sections as well */
#include <fcntl.h>
#include <outlast_sections.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static const struct outlast_section outer = OUTLAST_SECTION("outer loop"), inner = OUTLAST_SECTION("inner");
static volatile char *word;
static volatile int handled;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static void compute(double ms)
{
    for (double end = now() + ms; now() < end;)
        ;
}

static void in_handler(int signal)
{
    (void)signal;
    OUTLAST_SCOPE("handler");
    handled++;
}

static void stay(void)
{
    while (*word)
        ;
}

/* The sections overlap: the inner one ends after the outer one. */
static void sections(const char *stays, int exit)
{
    outlast_section_enter(&outer);
    if (!strcmp(stays, "outer"))
        stay();
    outlast_section_enter(&inner);
    if (!strcmp(stays, "inner"))
        stay();
    outlast_section_exit(&outer, exit);
    if (!strcmp(stays, "overlap"))
        stay();
    outlast_section_exit(&inner, exit);
    OUTLAST_SCOPE("the last");
    if (!strcmp(stays, "scope"))
        stay();
}

static void *thread(void *stays)
{
    for (int i = 0; i < 1000; i++)
        sections("", i & 1);
    sections(stays ? stays : "", 0);
    return NULL;
}

int main(int argc, char **argv)
{
    int fd = open(argv[argc - 1], O_RDWR);
    word = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    if (fd < 0 || word == MAP_FAILED)
        return 1;
    close(fd);
    signal(SIGUSR1, in_handler);
    char line[100];
    for (int n = 1; fgets(line, sizeof line, stdin); n++) {
        line[strcspn(line, "\n")] = 0;
        if (!strcmp(line, "work"))
            for (int i = 0; i < 20000; i++)
                sections("", i % 3);
        if (!strcmp(line, "handlers"))
            for (int i = 0; i < 2000; i++) {
                outlast_section_enter(&inner);
                raise(SIGUSR1);
                outlast_section_exit(&inner, 0);
            }
        if (!strcmp(line, "threads")) {
            pthread_t threads[8];
            for (int i = 0; i < 8; i++)
                if (pthread_create(&threads[i], NULL, thread, NULL))
                    return 1;
            for (int i = 0; i < 8; i++)
                pthread_join(threads[i], NULL);
        }
        if (!strcmp(line, "long")) {
            outlast_section_enter(&outer);
            compute(300);
            outlast_section_exit(&outer, 7);
        }
        if (!strncmp(line, "hang ", 5))
            sections(line + 5, 0);
        if (!strcmp(line, "thread")) {
            pthread_t other;
            if (pthread_create(&other, NULL, thread, "inner"))
                return 1;
            pthread_detach(other);
        }
        printf("%d %s\n", n, line);
        fflush(stdout);
    }
    return 3;
}
