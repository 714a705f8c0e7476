/* Waits for so many periods of a timer: `periods COUNT`. None may be lost or counted twice. */
#define _POSIX_C_SOURCE 200809L
#include "timer_client.h"

#include "must.h"
#include <time.h>

#define PERIOD 700000ul

static unsigned long now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (unsigned long)time.tv_sec * 1000000000ul + (unsigned long)time.tv_nsec;
}

int main(int count, char *arguments[])
{
    const unsigned long wanted = count > 1 ? strtoul(arguments[1], NULL, 10) : 1, begun = now();
    struct glue_channel *channel = granted("timer");
    unsigned long timer, waited = 0;
    struct timer_client client;

    timer_client_open(&client, channel);
    must("create", call_timer_create(&client, begun, PERIOD, &timer));
    while (waited < wanted) {
        unsigned long before = (now() - begun) / PERIOD, after;
        unsigned int passed = 0;

        must("wait", call_timer_wait(&client, timer, &passed, NULL));
        after = (now() - begun) / PERIOD;
        waited += passed;
        if (passed == 0 || waited < before || waited > after) {
            fprintf(stderr, "%lu periods, then %lu counted, then %lu\n", before, waited, after);
            return 1;
        }
    }
    must("remove", call_timer_remove(&client, timer, NULL));
    if (call_timer_wait(&client, timer, NULL, NULL) != GLUE_UNKNOWN) {
        fprintf(stderr, "a timer that was removed can be waited for\n");
        return 1;
    }
    printf("%lu\n", waited);
    timer_client_close(&client);
    glue_channel_close(channel);
    return 0;
}
