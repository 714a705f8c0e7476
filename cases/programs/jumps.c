/* setjmp and longjmp over many frames, with and without the signal mask. */
#include "tell.h"
#include <setjmp.h>
#include <signal.h>

static jmp_buf plain;
static sigjmp_buf masked;

static int dive(int depth, int round)
{
    volatile char ballast[100];
    ballast[depth % 100] = depth;
    if (depth == 0) {
        if (round % 2)
            siglongjmp(masked, round + 1);
        longjmp(plain, round + 1);
    }
    return dive(depth - 1, round) + ballast[depth % 100];
}

int main(int argc, char **argv)
{
    volatile int rounds = argc > 1 ? atoi(argv[1]) : 1000, round = 0;
    sigset_t usr1, now;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    while (round < rounds) {
        int from;
        if (round % 2 ? !(from = sigsetjmp(masked, 1)) : !(from = setjmp(plain))) {
            if (round % 2)
                must(!sigprocmask(SIG_BLOCK, &usr1, NULL), "sigprocmask");
            dive(round % 50, round);
        }
        must(!sigprocmask(SIG_BLOCK, NULL, &now), "sigprocmask");
        must(!sigismember(&now, SIGUSR1), "siglongjmp did not restore the mask");
        tell("round %d came back with %d\n", round, from);
        round++;
    }
    return 0;
}
