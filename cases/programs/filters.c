/* Filters of system calls that a program installs on itself: filters MODE ROUNDS.
 *
 * deny: some calls fail, by number or by argument, one is caught by a handler; more filters come later. deny-threads: and bind
 * threads that are made then.
 * narrow: whatever neither the program nor the engine needs ends the process; bare: nor what the engine could do without.
 * closed, strict: whatever the program does not need ends it. closed-threads: the same, for several threads at once.
 * killed: the program makes a call that ends it. */
#define _GNU_SOURCE
#include "tell.h"
#include "filter.h"
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>

enum { THREADS = 3 };

static volatile int caught;
static volatile long answer;

static void on_sigsys(int sig, siginfo_t *info, void *context)
{
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    caught += sig == SIGSYS && info->si_code == 1 && info->si_errno == 7 && info->si_syscall == SYS_getppid
              && info->si_arch == AUDIT_ARCH_X86_64 && (greg_t)info->si_call_addr == registers[REG_RIP]
              && registers[REG_RAX] == SYS_getppid;
    registers[REG_RAX] = 4711;
}

static const char *outcome(long result)
{
    return result < 0 ? strerrorname_np(errno) : "done";
}

static void *in_thread(void *number)
{
    pid_t parent = getppid();
    long priority = syscall(SYS_getpriority, 0, 0);
    return (void *)(long)(parent == 4711 && priority < 0 && errno == ERANGE ? (long)number : -1);
}

static void deny(int rounds, int with_threads)
{
    struct sigaction action = {.sa_sigaction = on_sigsys, .sa_flags = SA_SIGINFO};
    must(!sigaction(SIGSYS, &action, NULL), "sigaction");
    about(SYS_getpgrp, SECCOMP_RET_ERRNO | EXDEV);
    about(SYS_getppid, SECCOMP_RET_TRAP | 7);
    about(SYS_getsid, SECCOMP_RET_ERRNO);
    about(SYS_alarm, SECCOMP_RET_TRACE);
    about_argument(SYS_mkdir, 1, 0777, SECCOMP_RET_ERRNO | EACCES);
    about_argument(SYS_getitimer, 0, ITIMER_PROF, SECCOMP_RET_ERRNO | EPERM);
    install(0, SECCOMP_RET_ALLOW);
    for (int i = 0; i < rounds; i++) {
        char folder[16];
        snprintf(folder, sizeof folder, "folder%d", i);
        errno = 0;
        tell("%d getpgrp %s\n", i, outcome(syscall(SYS_getpgrp)));
        tell("%d mkdir %s\n", i, outcome(syscall(SYS_mkdir, folder, 0777)));
        tell("%d mkdir for me %s\n", i, outcome(syscall(SYS_mkdir, folder, 0700)));
        tell("%d alarm %s\n", i, outcome(syscall(SYS_alarm, 0)));
        struct itimerval time;
        long session = syscall(SYS_getsid, 0), denied = getitimer(ITIMER_PROF, &time);
        tell("%d getsid %ld getitimer %ld %d\n", i, session, denied, getitimer(ITIMER_REAL, &time));
        int before = caught;
        long parent = getppid();
        tell("%d getppid %ld caught %d\n", i, parent, caught - before);
        if (i == rounds / 2) {
            about(SYS_getpriority, SECCOMP_RET_ERRNO | ERANGE);
            about(SYS_getitimer, SECCOMP_RET_ERRNO | EDOM);
            install(0, SECCOMP_RET_ALLOW);
        }
        if (with_threads && i > rounds / 2 && i % 20 == 0) {
            pthread_t threads[THREADS];
            long sum = 0;
            for (long n = 0; n < THREADS; n++)
                must(!pthread_create(&threads[n], NULL, in_thread, (void *)n), "pthread_create");
            for (int n = 0; n < THREADS; n++) {
                void *said;
                must(!pthread_join(threads[n], &said), "pthread_join");
                sum += (long)said;
            }
            tell("%d threads %ld\n", i, sum);
        }
    }
}

static void narrow(int rounds, int with_wishes)
{
    char *memory = calloc(64, 4096);
    ALLOW(NEEDS);
    for (size_t i = 0; with_wishes && i < sizeof WISHES / sizeof *WISHES; i++)
        about(WISHES[i], SECCOMP_RET_ALLOW);
    about(SYS_getpriority, SECCOMP_RET_ALLOW);
    about(SYS_getppid, SECCOMP_RET_ERRNO | EPERM);
    install(0, SECCOMP_RET_KILL_PROCESS);
    for (int i = 0; i < rounds; i++) {
        unsigned sum = 0;
        for (int page = 0; page < 64; page++)
            sum += memory[page * 4096] += page;
        errno = 0;
        tell("%d sum %u getppid %s priority %ld\n", i, sum, outcome(syscall(SYS_getppid)), syscall(SYS_getpriority, 0, 0));
    }
}

static void allow_own(void)
{
    static const int OWN[] = {SYS_read, SYS_write, SYS_exit, SYS_exit_group, SYS_rt_sigreturn, SYS_getpriority};
    for (size_t i = 0; i < sizeof OWN / sizeof *OWN; i++)
        about(OWN[i], SECCOMP_RET_ALLOW);
}

static volatile long count, has_begun;

static void *waits(void *end)
{
    char byte;
    long parents = 0;
    has_begun = 1;
    while (read(*(int *)end, &byte, 1) == 1)
        parents += syscall(SYS_getpriority, 0, 0) > 0;
    return (void *)parents;
}

static void *counts(void *none)
{
    for (;;)
        count++;
    return none;
}

static void closed(int rounds, int with_threads)
{
    /* Static, so that the reader waits there until the process ends: its own end would make calls. */
    static int ends[2];
    pthread_t reader, counter;
    must(!pipe(ends), "pipe");
    if (with_threads) {
        must(!pthread_create(&reader, NULL, waits, &ends[0]), "pthread_create");
        must(!pthread_create(&counter, NULL, counts, NULL), "pthread_create");
        /* What the threads library calls as they begin comes before the filter. */
        while (count == 0 || !has_begun)
            usleep(1000);
    }
    allow_own();
    install(with_threads ? SECCOMP_FILTER_FLAG_TSYNC : 0, SECCOMP_RET_KILL_PROCESS);
    for (int i = 0; i < rounds; i++) {
        tell("%d priority %ld\n", i, syscall(SYS_getpriority, 0, 0));
        if (with_threads)
            must(write(ends[1], "x", 1) == 1, "write to the thread");
    }
}

static void strict(int rounds)
{
    tell("strict\n");
    must(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT), "strict mode");
    for (int i = 0; i < rounds; i++)
        if (write(1, "still here\n", 11) != 11)
            syscall(SYS_exit, 1);
    syscall(SYS_exit, 0);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "deny";
    int rounds = argc > 2 ? atoi(argv[2]) : 200;
    must(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs");
    if (!strcmp(mode, "deny") || !strcmp(mode, "deny-threads"))
        deny(rounds, !strcmp(mode, "deny-threads"));
    else if (!strcmp(mode, "narrow") || !strcmp(mode, "bare"))
        narrow(rounds, !strcmp(mode, "narrow"));
    else if (!strcmp(mode, "closed") || !strcmp(mode, "closed-threads"))
        closed(rounds, !strcmp(mode, "closed-threads"));
    else if (!strcmp(mode, "strict"))
        strict(rounds);
    else {
        about(SYS_getppid, SECCOMP_RET_KILL_PROCESS);
        install(0, SECCOMP_RET_ALLOW);
        for (int i = 0; i < rounds; i++)
            tell("%d\n", i);
        tell("getppid %d\n", getppid());
    }
    return 0;
}
