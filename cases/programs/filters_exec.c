/* Becomes itself again and again by execve, under ever more filters of system calls: filters_exec MODE ROUNDS IMAGES. In every image
 * the filters of all before it hold.
 *
 * deny: some calls fail, one is caught by a handler. narrow: whatever neither the program nor the engine needs ends the process.
 * no-pair: the engine could not be put into the next image, which runs without it. none: no filters. */
#define _GNU_SOURCE
#include "tell.h"
#include "filter.h"
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>

static volatile int caught;

static void on_sigsys(int sig, siginfo_t *info, void *context)
{
    (void)sig;
    caught += info->si_syscall == SYS_getppid;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = 4711;
}

static void install_deny(int image)
{
    if (image == 0) {
        about(SYS_getppid, SECCOMP_RET_TRAP);
        about_argument(SYS_mkdir, 1, 0777, SECCOMP_RET_ERRNO | EACCES);
        about_argument(SYS_getitimer, 0, ITIMER_PROF, SECCOMP_RET_ERRNO | EPERM);
    } else {
        /* One more call for each image; the strictest answer counts. */
        about_argument(SYS_getitimer, 0, ITIMER_PROF, SECCOMP_RET_ERRNO | EDOM);
        about_argument(SYS_getpriority, 0, image, SECCOMP_RET_ERRNO | ERANGE);
    }
    install(0, SECCOMP_RET_ALLOW);
}

static void install_narrow(void)
{
    static const int OWN[] = {SYS_execve, SYS_arch_prctl, SYS_readlink, SYS_uname, SYS_sysinfo, SYS_mkdir, SYS_getpriority,
                              SYS_getitimer, SYS_prctl, SYS_seccomp};
    ALLOW(NEEDS);
    ALLOW(ENTRY);
    /* In a container nobody may take a descriptor of another process: the next image has to connect. */
    if (syscall(SYS_pidfd_getfd, -1, 0, 0) < 0 && errno == EPERM)
        ALLOW(CONNECTION);
    for (size_t i = 0; i < sizeof OWN / sizeof *OWN; i++)
        about(OWN[i], SECCOMP_RET_ALLOW);
    about(SYS_getppid, SECCOMP_RET_TRAP);
    install(0, SECCOMP_RET_KILL_PROCESS);
}

static const char *outcome(long result)
{
    return result < 0 ? strerrorname_np(errno) : "done";
}

int main(int argc, char **argv)
{
    must(argc >= 4, "three arguments");
    const char *mode = argv[1];
    int rounds = atoi(argv[2]), images = atoi(argv[3]), image = argc > 4 ? atoi(argv[4]) : 0;
    struct sigaction action = {.sa_sigaction = on_sigsys, .sa_flags = SA_SIGINFO};
    must(!sigaction(SIGSYS, &action, NULL), "sigaction");
    must(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs");
    if (!strcmp(mode, "deny"))
        install_deny(image);
    else if (!strcmp(mode, "narrow") && image == 0)
        install_narrow();
    else if (!strcmp(mode, "no-pair") && image == 0) {
        about(SYS_getppid, SECCOMP_RET_TRAP);
        about(SYS_socketpair, SECCOMP_RET_ERRNO | EPERM);
        install(0, SECCOMP_RET_ALLOW);
    }
    for (int i = 0; i < rounds; i++) {
        char folder[32];
        struct itimerval time;
        snprintf(folder, sizeof folder, "folder%d.%d", image, i);
        errno = 0;
        tell("%d %d mkdir %s\n", image, i, outcome(syscall(SYS_mkdir, folder, 0777)));
        tell("%d %d mkdir for me %s\n", image, i, outcome(syscall(SYS_mkdir, folder, 0700)));
        tell("%d %d getitimer %s\n", image, i, outcome(getitimer(ITIMER_PROF, &time)));
        for (int who = 0; who < 3; who++)
            tell("%d %d getpriority %s\n", image, i, outcome(syscall(SYS_getpriority, who, 0)));
        int before = caught;
        long parent = strcmp(mode, "none") ? getppid() : 0;
        tell("%d %d getppid %ld caught %d\n", image, i, parent, caught - before);
    }
    if (image + 1 < images) {
        char next[16];
        snprintf(next, sizeof next, "%d", image + 1);
        execl(argv[0], argv[0], mode, argv[2], argv[3], next, NULL);
        must(0, "execl");
    }
    return 0;
}
