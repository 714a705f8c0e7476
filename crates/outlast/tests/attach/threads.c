// Threads that print numbers in turn, compute, and wait in several ways. What they print is the same in every run.
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { PRINTERS = 4 };

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER, held = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static int number, total, seconds;
static double sums[PRINTERS];

static void *print(void *argument)
{
    long place = (long)argument;
    double sum = 0, factor = 1.0 + 1e-7 * (place + 1);
    for (int over = 0; !over;) {
        pthread_mutex_lock(&turn);
        over = number >= total;
        if (!over)
            dprintf(1, "%d\n", number++);
        pthread_mutex_unlock(&turn);
        if (place % 2)
            nanosleep(&(struct timespec){0, 200000}, NULL);
    }
    // As many steps whoever printed what.
    for (int i = 0; i < 2000000; i++)
        sum = sum * 0.5 + factor * (i % 7);
    sums[place] = sum;
    return NULL;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + 1e-9 * time.tv_nsec;
}

// Waits for its time and for nothing else: 0 if it did, and neither too short nor, by more than half of it, too long.
static long in_time(double begun, int result, int expected)
{
    double took = now() - begun;
    return result != expected || took < seconds || (getenv("PUNCTUAL") && took > 1.5 * seconds);
}

static void *sleep_long(void *unused)
{
    double begun = now();
    int result = nanosleep(&(struct timespec){seconds, 0}, NULL);
    return (void *)(in_time(begun, result, 0) + (long)unused);
}

static void *wait_long(void *unused)
{
    double begun = now();
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += seconds;
    pthread_mutex_lock(&held);
    int result = pthread_cond_timedwait(&never, &held, &until);
    pthread_mutex_unlock(&held);
    return (void *)(in_time(begun, result, ETIMEDOUT) + (long)unused);
}

int main(int argc, char **argv)
{
    pthread_t printers[PRINTERS], waits[2];
    void *late[2];
    if (argc != 3)
        return 2;
    total = atoi(argv[1]);
    seconds = atoi(argv[2]);
    pthread_create(&waits[0], NULL, sleep_long, NULL);
    pthread_create(&waits[1], NULL, wait_long, NULL);
    for (long i = 0; i < PRINTERS; i++)
        pthread_create(&printers[i], NULL, print, (void *)i);
    for (int i = 0; i < PRINTERS; i++)
        pthread_join(printers[i], NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(waits[i], &late[i]);
    for (int i = 0; i < PRINTERS; i++)
        printf("%.9f\n", sums[i]);
    printf("%ld %ld\n", (long)late[0], (long)late[1]);
    return 5;
}
