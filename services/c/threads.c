/* Two threads of two clients of the scheduler that wake each other, wait for a moment, and take turns with the processor: `threads ROUNDS`
 * says how many wake-ups there were, each once. */
#define _POSIX_C_SOURCE 200809L
#include "scheduler_client.h"

#include "must.h"
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

static struct scheduler_client here, there;
static unsigned long one, two;
static atomic_uint sent, running;
static unsigned int rounds;

static unsigned long now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (unsigned long)time.tv_sec * 1000000000ul + (unsigned long)time.tv_nsec;
}

static void expect(const char *what, int right)
{
    if (!right) {
        fprintf(stderr, "%s: wrong\n", what);
        exit(1);
    }
}

/* Nobody else runs meanwhile. */
static void take_a_turn(struct scheduler_client *client, unsigned long thread)
{
    must("take", call_sched_take(client, thread, NULL));
    expect("two have the processor", atomic_fetch_add(&running, 1) == 0);
    atomic_fetch_sub(&running, 1);
    must("release", call_sched_release(client, thread, NULL));
}

static void *answer(void *nothing)
{
    (void)nothing;
    for (unsigned int round = 1; round <= rounds; round++) {
        int result = -1;

        must("wait", call_sched_block(&here, one, 0, &result));
        expect("woken by nobody", result == 0 && atomic_load(&sent) == round);
        if (round % 64 == 0) {
            const unsigned long until = now() + 300000;

            must("time-out", call_sched_block(&here, one, until, &result));
            expect("a time-out that is over early", result == 1 && now() >= until);
        }
        take_a_turn(&here, one);
        must("wake", call_sched_wakeup(&here, two, NULL));
    }
    return NULL;
}

int main(int count, char *arguments[])
{
    struct glue_channel *channels[] = { granted("here"), granted("there") };
    pthread_t thread;

    rounds = count > 1 ? (unsigned int)atoi(arguments[1]) : 1;
    scheduler_client_open(&here, channels[0]);
    scheduler_client_open(&there, channels[1]);
    must("one", call_sched_create(&here, 1, &one));
    must("two", call_sched_create(&there, 2, &two));
    if (pthread_create(&thread, NULL, answer, NULL) != 0) {
        return 2;
    }
    for (unsigned int round = 1; round <= rounds; round++) {
        int result = -1;

        atomic_store(&sent, round);
        must("wake", call_sched_wakeup(&there, one, NULL));
        take_a_turn(&there, two);
        must("wait", call_sched_block(&there, two, 0, &result));
        expect("woken by nobody", result == 0);
    }
    pthread_join(thread, NULL);
    must("free", call_sched_free(&here, one, NULL));
    expect("a thread that was freed can be woken", call_sched_wakeup(&there, one, NULL) == GLUE_REFUSED(9));
    printf("%u\n", rounds);
    scheduler_client_close(&here);
    scheduler_client_close(&there);
    glue_channel_close(channels[0]);
    glue_channel_close(channels[1]);
    return 0;
}
