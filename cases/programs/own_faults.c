/* Serves page faults of its own memory (userfaultfd): own_faults ROUNDS WAY. All but the first way end protection: what others can see before
 * that is protected, what comes later is as without protection.
 *   device    by a userfaultfd of /dev/userfaultfd, which serves the kernel's faults as well
 *   forked    a child serves
 *   handed    another process is given the userfaultfd, and serves
 *   shared    memory that is shared is served, after private memory was */
#define _GNU_SOURCE
#include "tell.h"
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { PAGES = 64, PAGE = 4096 };

static int faults;

static void *serve(void *unused)
{
    static char page[PAGE];
    struct uffd_msg message;
    while (read(faults, &message, sizeof message) == sizeof message) {
        unsigned long at = message.arg.pagefault.address & ~(PAGE - 1UL);
        memset(page, 'a' + at / PAGE % 26, PAGE);
        struct uffdio_copy copy = {.dst = at, .src = (unsigned long)page, .len = PAGE};
        must(!ioctl(faults, UFFDIO_COPY, &copy) || errno == EEXIST, "UFFDIO_COPY");
    }
    return unused;
}

static char *enroll(unsigned long at, int flags)
{
    char *memory = mmap((void *)at, PAGES * PAGE, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    must(memory != MAP_FAILED, "mmap");
    struct uffdio_register wanted = {.range = {(unsigned long)memory, PAGES * PAGE}, .mode = UFFDIO_REGISTER_MODE_MISSING};
    must(!ioctl(faults, UFFDIO_REGISTER, &wanted), "UFFDIO_REGISTER");
    return memory;
}

static void use(char *memory, int rounds)
{
    for (int i = 0; i < rounds; i++) {
        int at = i * 7 % PAGES;
        tell("%d %c\n", i, memory[at * PAGE + i]);
        if (i % 3 == 0)
            must(!madvise(memory + at * PAGE, PAGE, MADV_REMOVE) || !madvise(memory + at * PAGE, PAGE, MADV_DONTNEED), "madvise");
    }
}

/* Ends with its parent. */
static pid_t server(int connection)
{
    pid_t child = fork();
    must(child >= 0, "fork");
    if (child > 0)
        return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (connection >= 0) {
        char byte, control[CMSG_SPACE(sizeof(int))];
        struct iovec data = {&byte, 1};
        struct msghdr header = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
        must(recvmsg(connection, &header, 0) == 1, "recvmsg");
        faults = *(int *)CMSG_DATA(CMSG_FIRSTHDR(&header));
    }
    serve(NULL);
    _exit(0);
}

static void hand_over(int connection)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr head;
    } control = {.head = {.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
    *(int *)CMSG_DATA(&control.head) = faults;
    struct iovec data = {"x", 1};
    struct msghdr header = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    must(sendmsg(connection, &header, 0) == 1, "sendmsg");
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 100, connection[2] = {-1, -1};
    const char *way = argc > 2 ? argv[2] : "device";
    int is_forked = !strcmp(way, "forked"), is_handed = !strcmp(way, "handed");
    for (int i = 0; i < rounds; i++)
        tell("%d before\n", i);
    pid_t child = 0;
    if (is_handed) {
        must(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, connection), "socketpair");
        child = server(connection[1]);
    }
    if (!strcmp(way, "device"))
        faults = ioctl(open("/dev/userfaultfd", O_RDWR | O_CLOEXEC), USERFAULTFD_IOC_NEW, O_CLOEXEC);
    else
        faults = syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
    must(faults >= 0, "userfaultfd");
    struct uffdio_api api = {.api = UFFD_API};
    must(!ioctl(faults, UFFDIO_API, &api), "UFFDIO_API");
    char *memory = enroll(0x100000000, MAP_PRIVATE);
    if (is_handed)
        hand_over(connection[0]);
    if (is_forked)
        child = server(-1);
    pthread_t thread;
    if (!child)
        must(!pthread_create(&thread, NULL, serve, NULL), "pthread_create");
    use(memory, rounds);
    if (!strcmp(way, "shared")) {
        use(enroll(0x200000000, MAP_SHARED), rounds);
        use(memory, rounds);
    }
    if (child)
        kill(child, SIGKILL), waitpid(child, NULL, 0);
    return 0;
}
