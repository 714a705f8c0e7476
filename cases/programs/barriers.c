/* Uses what membarrier has registered once, again and again: barriers ROUNDS. */
#define _GNU_SOURCE
#include "tell.h"
#include <linux/membarrier.h>
#include <sys/syscall.h>

static long barrier(int command)
{
    errno = 0;
    return syscall(SYS_membarrier, command, 0, 0);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 300;
    static const int COMMANDS[][2] = {
        {MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, MEMBARRIER_CMD_PRIVATE_EXPEDITED},
        {MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE},
        {MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ, MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ},
        {MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, MEMBARRIER_CMD_GLOBAL_EXPEDITED},
    };
    enum { MOST = sizeof COMMANDS / sizeof *COMMANDS };
    for (int i = 0; i < rounds; i++) {
        if (i * MOST % rounds < MOST)
            tell("registered: %ld\n", barrier(COMMANDS[i * MOST / rounds][0]));
        for (int n = 0; n < MOST; n++) {
            long r = barrier(COMMANDS[n][1]);
            tell("%d %d %ld %s\n", i, n, r, errno ? strerrorname_np(errno) : "");
        }
    }
    return 0;
}
