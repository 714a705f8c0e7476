/* Locks that are kept at another component: `above` is one, and asks the one below for each. A lock below belongs to this process alone,
 * so that a new one has none of them until its clients' stubs make theirs again. */
#include "lock_server.h"
#include "below_client.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static struct below_client below;
/* Of the component below, by ours. */
static unsigned long locks[4096], last;

static int born(void)
{
    int error = 0;
    struct glue_channel *channel = glue_channel_open(glue_grant_inherited("below", &error), &error);

    if (channel != NULL) {
        below_client_open(&below, channel);
    }
    return error;
}

int serve_lock_alloc(struct glue_call *call, unsigned long *lock)
{
    int error = last + 1 < 4096 ? call_below_alloc(&below, &locks[last + 1]) : ENOSPC;

    (void)call;
    if (error == 0) {
        *lock = ++last;
    }
    return error == 0 ? 0 : glue_errno(error);
}

int serve_lock_pretake(struct glue_call *call, unsigned long lock, unsigned int thread, int *result)
{
    int error = call_below_pretake(&below, locks[lock], thread, result);

    (void)call;
    return error == 0 ? 0 : glue_errno(error);
}

int serve_lock_take(struct glue_call *call, unsigned long lock, unsigned int thread, int *result)
{
    int is_free = 0, error = call_below_pretake(&below, locks[lock], thread, &is_free);

    if (error != 0) {
        return glue_errno(error);
    }
    /* Nobody else asks below: it is not waited for there, where it would keep all others of this component waiting. */
    if (!is_free) {
        return glue_wait(call);
    }
    error = call_below_take(&below, locks[lock], thread, result);
    return error == 0 ? 0 : glue_errno(error);
}

int serve_lock_release(struct glue_call *call, unsigned long lock, unsigned int thread, int *result)
{
    int error = call_below_release(&below, locks[lock], thread, result);

    (void)call;
    return error == 0 ? 0 : glue_errno(error);
}

int serve_lock_free(struct glue_call *call, unsigned long lock, int *result)
{
    int error = call_below_free(&below, locks[lock], result);

    (void)call;
    return error == 0 ? 0 : glue_errno(error);
}

int main(void)
{
    struct glue_service service = lock_service;
    char text[200];

    service.born = born;
    glue_describe(glue_run(&service), text, sizeof text);
    fprintf(stderr, "above: %s\n", text);
    return 1;
}
