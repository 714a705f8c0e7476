/* Remembers who it is at the start, and says again and again whether it is still the same: process ids, groups, session,
 * terminal, user, limits, umask, directory, executable, name, signal dispositions and masks.
 * identity ROUNDS [limits]: with limits of its own, too. */
#define _GNU_SOURCE
#include "tell.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

struct self {
    long pid, tid, group, session, uid, gid, nice, umask, files, blocked, terminal;
    void (*on_usr1)(int), (*on_pipe)(int);
    long usr1_flags, usr1_blocks;
    int death_signal, subreaper, dumpable, merged;
    char directory[512], executable[512], name[64];
};

static void look(struct self *self)
{
    struct rlimit limit;
    sigset_t blocked;
    memset(self, 0, sizeof *self);
    self->pid = getpid();
    self->tid = gettid();
    self->group = getpgrp();
    self->session = getsid(0);
    self->uid = geteuid();
    self->gid = getegid();
    self->nice = getpriority(PRIO_PROCESS, 0);
    self->umask = umask(027);
    must(!getrlimit(RLIMIT_NOFILE, &limit), "getrlimit");
    self->files = limit.rlim_cur;
    must(!sigprocmask(SIG_BLOCK, NULL, &blocked), "sigprocmask");
    self->blocked = sigismember(&blocked, SIGUSR2) * 2 + sigismember(&blocked, SIGUSR1);
    self->terminal = tcgetpgrp(0) == self->group;
    struct sigaction usr1, broken;
    must(!sigaction(SIGUSR1, NULL, &usr1) && !sigaction(SIGPIPE, NULL, &broken), "sigaction");
    self->on_usr1 = usr1.sa_handler;
    self->on_pipe = broken.sa_handler;
    self->usr1_flags = usr1.sa_flags;
    self->usr1_blocks = sigismember(&usr1.sa_mask, SIGUSR2) * 2 + sigismember(&usr1.sa_mask, SIGTERM);
    must(getcwd(self->directory, sizeof self->directory) != NULL, "getcwd");
    must(readlink("/proc/self/exe", self->executable, sizeof self->executable - 1) > 0, "readlink");
    must(!prctl(PR_GET_NAME, self->name), "PR_GET_NAME");
    must(!prctl(PR_GET_PDEATHSIG, &self->death_signal) && !prctl(PR_GET_CHILD_SUBREAPER, &self->subreaper), "prctl");
    self->dumpable = prctl(PR_GET_DUMPABLE);
    self->merged = prctl(68, 0, 0, 0, 0); // PR_GET_MEMORY_MERGE, which the headers do not know yet.
}

static void handler(int signal)
{
    (void)signal;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 500, file = open("locked", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    static struct self first, now;
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigset_t usr2;
    sigemptyset(&usr2);
    sigaddset(&usr2, SIGUSR2);
    action.sa_mask = usr2;
    must(!chdir(".") && !sigprocmask(SIG_BLOCK, &usr2, NULL) && !sigaction(SIGUSR1, &action, NULL), "set up signals");
    signal(SIGPIPE, SIG_IGN);
    if (argc > 2) {
        // Nicer than before, which everybody may be.
        must(setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + 3) == 0, "setpriority");
        must(!setrlimit(RLIMIT_NOFILE, &(struct rlimit){900, 900}), "setrlimit");
        must(!prctl(PR_SET_PDEATHSIG, SIGUSR1) && !prctl(PR_SET_CHILD_SUBREAPER, 1), "prctl");
        must(!prctl(PR_SET_DUMPABLE, 0), "PR_SET_DUMPABLE");
        prctl(67, 1, 0, 0, 0); // PR_SET_MEMORY_MERGE
    }
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 10};
    must(file >= 0 && !flock(file, LOCK_EX) && !fcntl(file, F_SETLK, &lock), "lock a file");
    umask(027);
    look(&first);
    for (int i = 0; i < rounds; i++) {
        look(&now);
        tell("%d same %d nice %ld umask %lo files %ld blocked %ld\n", i, !memcmp(&first, &now, sizeof now),
             now.nice, now.umask, now.files, now.blocked);
    }
    return 0;
}
