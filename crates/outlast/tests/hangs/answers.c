/* Answers each line with its number and the line, but first does what it says.
 * answers FILE
 * hang: computes as long as the first byte of FILE, which it maps, is not 0; thread: has a thread do so; compute MS: computes so long;
 * mutexes, locks: as long as the byte is not 0 two threads each wait for what the other one has; twice: the first thread does so alone */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static volatile char *word;

static void *hang(void *unused)
{
    while (*word)
        ;
    return unused;
}

static pthread_mutex_t mutexes[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static pthread_rwlock_t locks[2] = {PTHREAD_RWLOCK_INITIALIZER, PTHREAD_RWLOCK_INITIALIZER};
/* Of the two threads so many have their first lock and want to wait for ever. */
static atomic_int waiting;

/* Until both have; or until none need any more, should the other one have seen that already. */
static void meet(void)
{
    const struct timespec pause = {0, 1000000};
    for (waiting++; *word && waiting < 2;)
        nanosleep(&pause, NULL);
}

static void *take_mutexes(void *second)
{
    int first = *word && second;
    pthread_mutex_lock(&mutexes[first]);
    if (*word)
        meet();
    pthread_mutex_lock(&mutexes[!first]);
    pthread_mutex_unlock(&mutexes[!first]);
    pthread_mutex_unlock(&mutexes[first]);
    return NULL;
}

static void *take_locks(void *second)
{
    int first = *word && second;
    pthread_rwlock_wrlock(&locks[first]);
    if (*word)
        meet();
    if (second)
        pthread_rwlock_rdlock(&locks[!first]);
    else
        pthread_rwlock_wrlock(&locks[!first]);
    pthread_rwlock_unlock(&locks[!first]);
    pthread_rwlock_unlock(&locks[first]);
    return NULL;
}

static void have_both(void *(*take)(void *))
{
    pthread_t threads[2];
    waiting = 0;
    for (long i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, take, (void *)i))
            exit(1);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
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
        if (!strcmp(line, "hang\n"))
            hang(NULL);
        if (!strcmp(line, "thread\n")) {
            pthread_t thread;
            if (pthread_create(&thread, NULL, hang, NULL))
                return 1;
            pthread_detach(thread);
        }
        if (!strcmp(line, "mutexes\n"))
            have_both(take_mutexes);
        if (!strcmp(line, "locks\n"))
            have_both(take_locks);
        if (!strcmp(line, "twice\n")) {
            pthread_mutex_lock(&mutexes[0]);
            if (*word)
                pthread_mutex_lock(&mutexes[0]);
            pthread_mutex_unlock(&mutexes[0]);
        }
        if (!strncmp(line, "compute ", 8))
            for (double end = now() + atoi(line + 8); now() < end;)
                ;
        printf("%d %s", n, line);
        fflush(stdout);
    }
    return 3;
}
