/* Forbids itself a system call by a seccomp filter, and prints again and again that it stays forbidden. */
#define _GNU_SOURCE
#include "tell.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 1000;
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpriority, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof rules / sizeof *rules, rules};
    tell("before: %ld\n", syscall(SYS_getpriority, 0, 0));
    must(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs");
    must(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), "install the filter");
    for (int i = 0; i < rounds; i++) {
        long priority = syscall(SYS_getpriority, 0, 0);
        tell("%d getpriority %ld %s, no_new_privs %d, seccomp %d\n", i, priority, priority < 0 ? strerror(errno) : "",
             prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), prctl(PR_GET_SECCOMP));
    }
    return 0;
}
