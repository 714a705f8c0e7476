// Waits in every way that has a time-out, none of which anything but its time ends, and says which it is back from.
//
//   program alone LENGTH_MS [KIND]    in one thread
//   program beside LENGTH_MS [KIND]   while another thread writes to a pipe of the program's own every few milliseconds
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <termios.h>
#include <unistd.h>

// In memory that the kernel cannot write what is left to.
static const struct timespec *spec;
static int ms;
static int never[2], full[2], nobody;

static struct timeval timeval(void) {
    return (struct timeval){spec->tv_sec, spec->tv_nsec / 1000};
}

static int is_error(long r, int error) {
    return r == -1 && errno == error;
}

static int by_poll(void) {
    struct pollfd p = {never[0], POLLIN, 0};
    return poll(&p, 1, ms) == 0;
}

static int by_ppoll(void) {
    struct pollfd p = {never[0], POLLIN, 0};
    return ppoll(&p, 1, spec, NULL) == 0;
}

static int by_raw_ppoll(void) {
    struct pollfd p = {never[0], POLLIN, 0};
    return syscall(SYS_ppoll, &p, 1, spec, NULL, 8) == 0;
}

static int by_select(void) {
    struct timeval time = timeval();
    fd_set set;
    FD_ZERO(&set);
    FD_SET(never[0], &set);
    return select(never[0] + 1, &set, NULL, NULL, &time) == 0 && time.tv_sec == 0 && time.tv_usec == 0;
}

static int by_raw_pselect(void) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(never[0], &set);
    return syscall(SYS_pselect6, never[0] + 1, &set, NULL, NULL, spec, NULL) == 0;
}

static int epoll(void) {
    int fd = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    if (epoll_ctl(fd, EPOLL_CTL_ADD, never[0], &event) != 0)
        abort();
    return fd;
}

static int by_epoll_wait(void) {
    struct epoll_event event;
    int fd = epoll(), r = epoll_wait(fd, &event, 1, ms);
    close(fd);
    return r == 0;
}

static int by_epoll_pwait(void) {
    struct epoll_event event;
    sigset_t none;
    sigemptyset(&none);
    int fd = epoll(), r = epoll_pwait(fd, &event, 1, ms, &none);
    close(fd);
    return r == 0;
}

static int by_epoll_pwait2(void) {
    struct epoll_event event;
    int fd = epoll();
    long r = syscall(SYS_epoll_pwait2, fd, &event, 1, spec, NULL, 8);
    close(fd);
    return r == 0;
}

static int by_nanosleep(void) {
    return nanosleep(spec, NULL) == 0;
}

static int by_clock_nanosleep(void) {
    struct timespec left;
    return clock_nanosleep(CLOCK_BOOTTIME, 0, spec, &left) == 0;
}

static int by_futex(void) {
    static int word;
    return is_error(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, spec), ETIMEDOUT);
}

static int by_shared_futex(void) {
    static int word;
    return is_error(syscall(SYS_futex, &word, FUTEX_WAIT, 0, spec), ETIMEDOUT);
}

static int by_condition(void) {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += ms * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&mutex);
    int r = pthread_cond_timedwait(&condition, &mutex, &until);
    pthread_mutex_unlock(&mutex);
    return r == ETIMEDOUT;
}

static int by_sigtimedwait(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    return is_error(sigtimedwait(&set, NULL, spec), EAGAIN);
}

static int by_semtimedop(void) {
    int set = semget(IPC_PRIVATE, 1, 0600);
    struct sembuf down = {0, -1, 0};
    int is_right = is_error(semtimedop(set, &down, 1, spec), EAGAIN);
    semctl(set, 0, IPC_RMID);
    return is_right;
}

static int by_message_queue(void) {
    char name[40], text[64];
    snprintf(name, sizeof name, "/outlast-waits-%d", getpid());
    struct mq_attr attributes = {.mq_maxmsg = 1, .mq_msgsize = sizeof text};
    mqd_t queue = mq_open(name, O_CREAT | O_RDWR, 0600, &attributes);
    mq_unlink(name);
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += ms * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    int is_right = is_error(mq_timedreceive(queue, text, sizeof text, NULL, &until), ETIMEDOUT);
    mq_close(queue);
    return is_right;
}

static int by_io_getevents(void) {
    aio_context_t context = 0;
    struct io_event event;
    if (syscall(SYS_io_setup, 1, &context) != 0)
        return 0;
    int is_right = syscall(SYS_io_getevents, context, 1, 1, &event, spec) == 0;
    syscall(SYS_io_destroy, context);
    return is_right;
}

static void limit(int fd, int option) {
    struct timeval time = timeval();
    if (setsockopt(fd, SOL_SOCKET, option, &time, sizeof time) != 0)
        abort();
}

static int by_recv(void) {
    char byte;
    return is_error(recv(never[0], &byte, 1, 0), EAGAIN);
}

static int by_read(void) {
    char byte;
    return is_error(read(never[0], &byte, 1), EAGAIN);
}

static int by_recvmsg(void) {
    char byte;
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    return is_error(recvmsg(never[0], &message, 0), EAGAIN);
}

static int by_peek(void) {
    char byte;
    return is_error(recv(never[0], &byte, 1, MSG_PEEK), EAGAIN);
}

static int by_recvmmsg(void) {
    char byte;
    struct iovec part = {&byte, 1};
    struct mmsghdr message = {.msg_hdr = {.msg_iov = &part, .msg_iovlen = 1}};
    return is_error(recvmmsg(never[0], &message, 1, 0, NULL), EAGAIN);
}

static int by_accept(void) {
    return is_error(accept(nobody, NULL, NULL), EAGAIN);
}

static int by_send(void) {
    return is_error(send(full[0], "x", 1, 0), EAGAIN);
}

static int by_terminal(void) {
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    grantpt(master);
    unlockpt(master);
    int terminal = open(ptsname(master), O_RDWR | O_NOCTTY);
    struct termios settings;
    tcgetattr(terminal, &settings);
    cfmakeraw(&settings);
    settings.c_cc[VMIN] = 0;
    settings.c_cc[VTIME] = (ms + 99) / 100;
    tcsetattr(terminal, TCSANOW, &settings);
    char byte;
    int is_right = read(terminal, &byte, 1) == 0;
    close(terminal);
    close(master);
    return is_right;
}

static struct {
    const char *name;
    int (*wait)(void);
} kinds[] = {
    {"poll", by_poll},
    {"ppoll", by_ppoll},
    {"raw ppoll", by_raw_ppoll},
    {"select", by_select},
    {"raw pselect6", by_raw_pselect},
    {"epoll_wait", by_epoll_wait},
    {"epoll_pwait", by_epoll_pwait},
    {"epoll_pwait2", by_epoll_pwait2},
    {"nanosleep", by_nanosleep},
    {"clock_nanosleep", by_clock_nanosleep},
    {"futex", by_futex},
    {"shared futex", by_shared_futex},
    {"condition", by_condition},
    {"sigtimedwait", by_sigtimedwait},
    {"semtimedop", by_semtimedop},
    {"message queue", by_message_queue},
    {"io_getevents", by_io_getevents},
    {"recv", by_recv},
    {"read", by_read},
    {"recvmsg", by_recvmsg},
    {"peek", by_peek},
    {"recvmmsg", by_recvmmsg},
    {"accept", by_accept},
    {"send", by_send},
    {"terminal", by_terminal},
};

static void *write_now_and_then(void *nothing) {
    int ends[2];
    char byte;
    if (pipe2(ends, O_NONBLOCK) != 0)
        abort();
    for (;;) {
        usleep(3000);
        if (write(ends[1], "x", 1) == 1 && read(ends[0], &byte, 1) != 1)
            abort();
    }
    return nothing;
}

static void prepare(const char *length) {
    ms = atoi(length);
    struct timespec *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *page = (struct timespec){ms / 1000, ms % 1000 * 1000000L};
    mprotect(page, 4096, PROT_READ);
    spec = page;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, NULL);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, never) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, full) != 0)
        abort();
    static char much[1 << 16];
    while (send(full[0], much, sizeof much, MSG_DONTWAIT) > 0) {
    }
    while (send(full[0], much, 1, MSG_DONTWAIT) > 0) {
    }
    nobody = socket(AF_INET, SOCK_STREAM, 0);
    if (listen(nobody, 1) != 0)
        abort();
    limit(never[0], SO_RCVTIMEO);
    limit(nobody, SO_RCVTIMEO);
    limit(full[0], SO_SNDTIMEO);
}

int main(int count, char **words) {
    pthread_t thread;
    if (count < 3)
        return 2;
    prepare(words[2]);
    if (strcmp(words[1], "beside") == 0)
        pthread_create(&thread, NULL, write_now_and_then, NULL);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (count > 3 && strcmp(words[3], kinds[i].name) != 0)
            continue;
        printf("%s: ", kinds[i].name);
        fflush(stdout);
        printf("%s\n", kinds[i].wait() ? "over" : strerror(errno));
        fflush(stdout);
    }
    return 0;
}
