/* Makes objects of System V: objects ROUNDS. Those without a key, of which nobody is to be left that the program does not know, and
 * those that must not have been there before (IPC_EXCL). What it makes has sizes and permissions that others' do not have. */
#define _GNU_SOURCE
#include "tell.h"
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

enum { KINDS = 3 };

static int count;
static unsigned mode;
static size_t size;

static int get(int kind, key_t key, int flags)
{
    /* Who only looks for one asks for no permissions. */
    flags |= flags || key == IPC_PRIVATE ? mode : 0;
    return kind == 0 ? shmget(key, size, flags) : kind == 1 ? semget(key, count, flags) : msgget(key, flags);
}

static int drop(int kind, int id)
{
    return kind == 0 ? shmctl(id, IPC_RMID, NULL) : kind == 1 ? semctl(id, 0, IPC_RMID) : msgctl(id, IPC_RMID, NULL);
}

/* What the kernel says of an object, or of the one at a place. */
static int state(int kind, int id, int by_place, struct ipc_perm *permissions, size_t *how_large)
{
    struct shmid_ds segment;
    struct semid_ds set;
    struct msqid_ds queue;
    int r;
    switch (kind) {
    case 0:
        r = shmctl(id, by_place ? SHM_STAT : IPC_STAT, &segment);
        *permissions = segment.shm_perm, *how_large = segment.shm_segsz;
        return r;
    case 1:
        r = semctl(id, 0, by_place ? SEM_STAT : IPC_STAT, &set);
        *permissions = set.sem_perm, *how_large = set.sem_nsems;
        return r;
    default:
        r = msgctl(id, by_place ? MSG_STAT : IPC_STAT, &queue);
        *permissions = queue.msg_perm, *how_large = 0;
        return r;
    }
}

/* How many there are of those that only this program makes, whatever it knows of them. */
static int left(int kind, int removes)
{
    char room[256];
    int found = 0;
    int last = kind == 0 ? shmctl(0, SHM_INFO, (void *)room) : kind == 1 ? semctl(0, 0, SEM_INFO, room) : msgctl(0, MSG_INFO, (void *)room);
    for (int place = 0; place <= last; place++) {
        struct ipc_perm permissions;
        size_t how_large;
        int id = state(kind, place, 1, &permissions, &how_large);
        size_t wanted = kind == 0 ? size : kind == 1 ? (size_t)count : 0;
        /* One that is half made may have other permissions for those whom it concerns least. */
        if (id >= 0 && permissions.cuid == geteuid() && (permissions.mode & 0776) == (mode & 0776) && how_large == wanted) {
            found++;
            if (removes)
                drop(kind, id);
        }
    }
    return found;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 200;
    /* Of queues only permissions tell; the few others that are made like these are gone again soon. */
    mode = 0600 | (getpid() % 7 + 1) << 3 | getpid() / 7 % 8;
    count = 20 + getpid() % 200;
    size = 70000 + getpid();
    key_t key = 0x4f000000 + getpid() % 0x800000;
    for (int i = 0; i < rounds; i++)
        for (int kind = 0; kind < KINDS; kind++) {
            struct ipc_perm permissions;
            size_t how_large;
            int one = get(kind, IPC_PRIVATE, 0), two = get(kind, IPC_PRIVATE, IPC_CREAT | IPC_EXCL);
            must(one >= 0 && two >= 0 && one != two, "an object without a key");
            must(!state(kind, two, 0, &permissions, &how_large), "IPC_STAT");
            int is_private = permissions.__key == IPC_PRIVATE && (permissions.mode & 0777) == mode;
            int named = get(kind, key, IPC_CREAT | IPC_EXCL);
            must(named >= 0, "one with a key that nobody has");
            errno = 0;
            int again = get(kind, key, IPC_CREAT | IPC_EXCL), why = errno;
            must(!state(kind, named, 0, &permissions, &how_large), "IPC_STAT");
            tell("%d %d private %d, named %d, again %d %s, the same %d\n", i, kind, is_private,
                 permissions.__key == key && (permissions.mode & 0777) == mode, again, strerrorname_np(why),
                 get(kind, key, 0) == named);
            must(!drop(kind, one) && !drop(kind, two) && !drop(kind, named), "IPC_RMID");
        }
    for (int kind = 0; kind < KINDS; kind++) {
        int found = left(kind, 0);
        /* Of queues others' may look alike, which are gone after a moment. */
        for (int tries = 0; found && tries < 30; tries++) {
            usleep(100000);
            found = left(kind, 0);
        }
        left(kind, found);
        tell("left of kind %d: %d\n", kind, found);
    }
    return 0;
}
