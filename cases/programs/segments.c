/* Works in System V shared memory: in a segment that stays, attached anew now and then, in one that is removed while it is in use,
 * and in one that is attached twice; what is there must go back with the rest of memory. */
#define _GNU_SOURCE
#include "tell.h"
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>

enum { WORDS = 8192, BYTES = WORDS * 8 };

static uint64_t *attach(int id, void *at, int flags)
{
    uint64_t *words = shmat(id, at, flags);
    must(words != (void *)-1, "shmat");
    return words;
}

static int make(void)
{
    int id = shmget(IPC_PRIVATE, BYTES, 0600);
    must(id >= 0, "shmget");
    return id;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 500, stays = make(), removed = make(), twice = make();
    uint64_t *one = attach(stays, NULL, 0), *two = attach(removed, NULL, 0), *three = attach(twice, NULL, 0);
    uint64_t *again = attach(twice, NULL, SHM_RDONLY), random = 3, private = 0;
    must(!shmctl(removed, IPC_RMID, NULL), "IPC_RMID");
    for (int i = 0; i < rounds; i++) {
        for (int n = 0; n < 20; n++) {
            uint64_t at = next(&random) % WORDS;
            one[at] += i + private, two[at] ^= random, three[at]++, private++;
        }
        if (i % 50 == 49) {
            void *at = one;
            must(!shmdt(one), "shmdt");
            one = attach(stays, i % 100 == 99 ? NULL : at, 0);
        }
        if (i % 70 == 69)
            must(!mprotect(two + WORDS / 2, BYTES / 2, PROT_READ) && !mprotect(two + WORDS / 2, BYTES / 2, PROT_READ | PROT_WRITE),
                 "mprotect");
        if (i % 90 == 89) { /* A new one in the place of the removed. */
            must(!shmdt(two), "shmdt");
            two = attach(removed = make(), two, 0);
            must(!shmctl(removed, IPC_RMID, NULL), "IPC_RMID");
        }
        struct shmid_ds state;
        must(!shmctl(twice, IPC_STAT, &state), "IPC_STAT");
        tell("%d %016lx %016lx %016lx %d attached %lu\n", i, mix(1, one, BYTES), mix(1, two, BYTES), mix(1, three, BYTES),
             again[5] == three[5], (unsigned long)state.shm_nattch);
    }
    must(!shmctl(stays, IPC_RMID, NULL) && !shmctl(twice, IPC_RMID, NULL), "IPC_RMID");
    return 0;
}
