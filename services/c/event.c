/* Events that threads of any client wait for and trigger: the service of src/event.rs in C. */
#include "event_server.h"

#include <errno.h>
#include "faulty.h"

#define EVENTS 1024

static struct event {
    /* 0: none. */
    unsigned long id;
    /* And not waited for since. */
    int triggered;
} events[EVENTS];

static struct event *find(unsigned long id)
{
    for (size_t at = 0; at < EVENTS; at++) {
        if (events[at].id == id) {
            return &events[at];
        }
    }
    return NULL;
}

int serve_event_split(struct glue_call *call, unsigned long parent, int group, uint64_t wanted, unsigned long *event)
{
    struct event *free = find(0);

    (void)call;
    (void)group;
    if (parent != 0 && find(parent) == NULL) {
        return EBADF;
    }
    if (free == NULL) {
        return ENOSPC;
    }
    *free = (struct event){ .id = wanted };
    *event = wanted;
    return 0;
}

int serve_event_wait(struct glue_call *call, unsigned long event, int *result)
{
    struct event *found = find(event);

    (void)result;
    if (found == NULL) {
        return EBADF;
    }
    if (!found->triggered) {
        return glue_wait(call);
    }
    found->triggered = 0;
    return 0;
}

int serve_event_trigger(struct glue_call *call, unsigned long event, int *result)
{
    struct event *found = find(event);

    (void)call;
    (void)result;
    if (found == NULL) {
        return EBADF;
    }
    found->triggered = 1;
    return 0;
}

int serve_event_free(struct glue_call *call, unsigned long event, int *result)
{
    struct event *found = find(event);

    (void)call;
    (void)result;
    if (found == NULL) {
        return EBADF;
    }
    found->id = 0;
    return 0;
}

int main(int count, char *arguments[])
{
    return serve("event", &event_service, count, arguments);
}
