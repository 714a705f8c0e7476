/* Two clients of the event component that wake each other, each by an event of the other: `ping_pong ROUNDS` says how many triggers
 * were waited for, each once. */
#include "event_client.h"

#include "must.h"
#include <pthread.h>
#include <stdatomic.h>

static struct event_client here, there;
static unsigned long ping, pong;
static atomic_uint sent;
static unsigned int rounds;

static void *answer(void *nothing)
{
    (void)nothing;
    for (unsigned int round = 1; round <= rounds; round++) {
        must("wait for ping", call_event_wait(&here, ping, NULL));
        if (atomic_load(&sent) != round) {
            fprintf(stderr, "woken by a trigger that nobody made, in round %u\n", round);
            exit(1);
        }
        must("trigger pong", call_event_trigger(&here, pong, NULL));
    }
    return NULL;
}

int main(int count, char *arguments[])
{
    struct glue_channel *channels[] = { granted("here"), granted("there") };
    unsigned long group;
    pthread_t thread;

    rounds = count > 1 ? (unsigned int)atoi(arguments[1]) : 1;
    event_client_open(&here, channels[0]);
    event_client_open(&there, channels[1]);
    must("group", call_event_split(&here, 0, 1, &group));
    must("ping", call_event_split(&here, group, 1, &ping));
    must("pong", call_event_split(&there, group, 1, &pong));
    if (pthread_create(&thread, NULL, answer, NULL) != 0) {
        return 2;
    }
    for (unsigned int round = 1; round <= rounds; round++) {
        atomic_store(&sent, round);
        must("trigger ping", call_event_trigger(&there, ping, NULL));
        must("wait for pong", call_event_wait(&there, pong, NULL));
    }
    pthread_join(thread, NULL);
    must("free ping", call_event_free(&here, ping, NULL));
    if (call_event_trigger(&there, ping, NULL) != GLUE_REFUSED(9)) {
        fprintf(stderr, "an event that was freed can be triggered\n");
        return 1;
    }
    printf("%u\n", rounds);
    event_client_close(&here);
    event_client_close(&there);
    glue_channel_close(channels[0]);
    glue_channel_close(channels[1]);
    return 0;
}
