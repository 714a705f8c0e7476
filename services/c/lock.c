/* Locks between the threads of a client: the service of src/lock.rs in C. */
#include "lock_server.h"

#include <errno.h>
#include "faulty.h"

#define LOCKS 1024

static struct lock {
    /* 0: none. */
    unsigned long id;
    int held;
    unsigned int holder;
} locks[LOCKS];
static unsigned long last;

static struct lock *find(unsigned long id)
{
    for (size_t at = 0; at < LOCKS; at++) {
        if (locks[at].id == id) {
            return &locks[at];
        }
    }
    return NULL;
}

int serve_lock_alloc(struct glue_call *call, unsigned long *lock)
{
    struct lock *free = find(0);

    (void)call;
    if (free == NULL) {
        return ENOSPC;
    }
    *free = (struct lock){ .id = ++last };
    *lock = free->id;
    return 0;
}

int serve_lock_pretake(struct glue_call *call, unsigned long lock, unsigned int thread, int *result)
{
    const struct lock *found = find(lock);

    (void)call;
    (void)thread;
    if (found == NULL) {
        return EBADF;
    }
    *result = !found->held;
    return 0;
}

int serve_lock_take(struct glue_call *call, unsigned long lock, unsigned int thread, int *result)
{
    struct lock *found = find(lock);

    (void)result;
    if (found == NULL) {
        return EBADF;
    }
    if (found->held) {
        return found->holder == thread ? EDEADLK : glue_wait(call);
    }
    found->held = 1;
    found->holder = thread;
    return 0;
}

int serve_lock_release(struct glue_call *call, unsigned long lock, unsigned int thread, int *result)
{
    struct lock *found = find(lock);

    (void)call;
    (void)result;
    if (found == NULL) {
        return EBADF;
    }
    if (!found->held || found->holder != thread) {
        return EPERM;
    }
    found->held = 0;
    return 0;
}

int serve_lock_free(struct glue_call *call, unsigned long lock, int *result)
{
    struct lock *found = find(lock);

    (void)call;
    (void)result;
    if (found == NULL) {
        return EBADF;
    }
    if (found->held) {
        return EBUSY;
    }
    found->id = 0;
    return 0;
}

int main(int count, char *arguments[])
{
    return serve("lock", &lock_service, count, arguments);
}
