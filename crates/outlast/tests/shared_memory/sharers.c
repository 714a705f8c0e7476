// Three workers share memory of the kind that the first argument names: anonymous, segment, or file. They take turns at telling how far
// they are, and count in between, by locks that lie in that memory; with a second argument each by as many threads.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORKERS = 3, ROUNDS = 20, COUNTS = 15 };

static struct shared {
    pthread_mutex_t lock;
    pthread_cond_t turned;
    sem_t one;
    int turn, told;
    long counted, atomic, by_semaphore;
    char copied[WORKERS][5000];
    char read[WORKERS][5000];
} *shared;

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static void *map(const char *kind)
{
    size_t len = sizeof *shared;
    if (!strcmp(kind, "segment")) {
        int id = shmget(IPC_PRIVATE, len, 0600);
        void *at = shmat(id, 0, 0);
        shmctl(id, IPC_RMID, 0);
        return at == (void *)-1 ? MAP_FAILED : at;
    }
    if (!strcmp(kind, "file")) {
        char name[] = "/dev/shm/outlast-test-XXXXXX", other[64];
        int fd = mkstemp(name);
        // A second name, of which the mapping does not tell, as sem_open gives it.
        snprintf(other, sizeof other, "%s-2", name);
        if (fd < 0 || ftruncate(fd, len) || link(name, other) || unlink(name))
            fail("file");
        void *at = mmap(0, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        close(fd);
        unlink(other);
        return at;
    }
    return mmap(0, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static void *count(void *unused)
{
    for (int i = 0; i < COUNTS; i++) {
        pthread_mutex_lock(&shared->lock);
        shared->counted++;
        pthread_mutex_unlock(&shared->lock);
        __atomic_fetch_add(&shared->atomic, 1, __ATOMIC_SEQ_CST);
        sem_wait(&shared->one);
        shared->by_semaphore++;
        sem_post(&shared->one);
    }
    return unused;
}

static void work(int me, int threads)
{
    char pattern[sizeof shared->copied[0]], back[sizeof pattern];
    int file = open("/proc/self/exe", O_RDONLY);
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t others[8];
        for (int i = 0; i < threads; i++)
            if (pthread_create(&others[i], 0, count, 0))
                fail("pthread_create");
        count(0);
        for (int i = 0; i < threads; i++)
            pthread_join(others[i], 0);
        memset(pattern, 'a' + round % 26, 600);
        memcpy(shared->copied[me], pattern, 600);
        // The kernel writes there.
        if (pread(file, shared->read[me], sizeof back, round) != sizeof back
            || pread(file, back, sizeof back, round) != sizeof back)
            fail("pread");
        int same = !memcmp(shared->copied[me], pattern, 600) && !memcmp(shared->read[me], back, sizeof back);
        pthread_mutex_lock(&shared->lock);
        while (shared->turn != me)
            pthread_cond_wait(&shared->turned, &shared->lock);
        printf("worker %d round %d told %d %s\n", me, round, shared->told++, same ? "same" : "different");
        fflush(stdout);
        shared->turn = (me + 1) % WORKERS;
        pthread_cond_broadcast(&shared->turned);
        pthread_mutex_unlock(&shared->lock);
    }
    exit(10 + me);
}

int main(int argc, char **argv)
{
    int threads = argc > 2 ? atoi(argv[2]) - 1 : 0;
    shared = map(argv[1]);
    if (shared == MAP_FAILED)
        fail(argv[1]);
    pthread_mutexattr_t lock;
    pthread_condattr_t condition;
    pthread_mutexattr_init(&lock);
    pthread_mutexattr_setpshared(&lock, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&shared->lock, &lock);
    pthread_condattr_init(&condition);
    pthread_condattr_setpshared(&condition, PTHREAD_PROCESS_SHARED);
    pthread_cond_init(&shared->turned, &condition);
    sem_init(&shared->one, 1, 1);
    fflush(stdout);
    pid_t workers[WORKERS];
    for (int i = 0; i < WORKERS; i++)
        if (!(workers[i] = fork()))
            work(i, threads);
    for (int i = 0; i < WORKERS; i++) {
        int status;
        waitpid(workers[i], &status, 0);
        printf("worker %d: %d\n", i, WEXITSTATUS(status));
    }
    printf("%ld %ld %ld\n", shared->counted, shared->atomic, shared->by_semaphore);
    return 0;
}
