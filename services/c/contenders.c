/* Threads that contend for a lock, as src/bin/lock-contenders.rs has them: `contenders THREADS ROUNDS`. */
#include "lock_client.h"

#include "must.h"
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

static struct lock_client client;
static unsigned long lock;
static unsigned int rounds;

/* One write, so that lines of several threads do not mix. */
static void say(char sign, unsigned int thread)
{
    char line[20];
    int length = snprintf(line, sizeof line, "%c%u\n", sign, thread);

    if (write(1, line, (size_t)length) != length) {
        exit(2);
    }
}

static void *contend(void *number)
{
    const unsigned int thread = (unsigned int)(size_t)number;

    for (unsigned int round = 0; round < rounds; round++) {
        must("pretake", call_lock_pretake(&client, lock, thread, NULL));
        must("take", call_lock_take(&client, lock, thread, NULL));
        say('+', thread);
        sched_yield();
        say('-', thread);
        must("release", call_lock_release(&client, lock, thread, NULL));
    }
    return NULL;
}

int main(int count, char *arguments[])
{
    const unsigned int most = 64, threads = count > 1 ? (unsigned int)atoi(arguments[1]) : 1;
    struct glue_channel *channel = granted("lock");
    pthread_t all[64];

    rounds = count > 2 ? (unsigned int)atoi(arguments[2]) : 1;
    if (threads > most) {
        return 2;
    }
    lock_client_open(&client, channel);
    must("alloc", call_lock_alloc(&client, &lock));
    for (unsigned int thread = 1; thread <= threads; thread++) {
        if (pthread_create(&all[thread - 1], NULL, contend, (void *)(size_t)thread) != 0) {
            return 2;
        }
    }
    for (unsigned int thread = 0; thread < threads; thread++) {
        pthread_join(all[thread], NULL);
    }
    must("free", call_lock_free(&client, lock, NULL));
    if (lock_client_count(&client) != 0) {
        fprintf(stderr, "a lock that was freed is tracked\n");
        return 1;
    }
    lock_client_close(&client);
    glue_channel_close(channel);
    return 0;
}
