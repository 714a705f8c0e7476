// Four threads have others made that end at once, one after the other, until the input ends.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

enum { MAKERS = 4 };

static atomic_int over;

static void *end(void *argument)
{
    return (void *)((long)argument + 1);
}

static void *make(void *unused)
{
    long made = 0;
    while (!over) {
        pthread_t thread;
        void *next;
        if (pthread_create(&thread, NULL, end, (void *)made) || pthread_join(thread, &next) || (long)next != made + 1)
            return (void *)-1L;
        made++;
    }
    return unused;
}

int main(void)
{
    pthread_t makers[MAKERS];
    char byte;
    for (int i = 0; i < MAKERS; i++)
        pthread_create(&makers[i], NULL, make, NULL);
    puts("begun");
    fflush(stdout);
    while (read(0, &byte, 1) > 0)
        ;
    over = 1;
    long wrong = 0;
    for (int i = 0; i < MAKERS; i++) {
        void *result;
        pthread_join(makers[i], &result);
        wrong += result != NULL;
    }
    printf("%ld wrong\n", wrong);
    return 7;
}
