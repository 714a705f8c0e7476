/* Serves page faults of its own memory from a thread (userfaultfd), the kernel's among them: own_faults ROUNDS [device]. What others can see before that is
 * protected, what comes later is as without protection. With "device" it gets its userfaultfd from /dev/userfaultfd. */
#define _GNU_SOURCE
#include "tell.h"
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

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

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 100;
    for (int i = 0; i < rounds; i++)
        tell("%d before\n", i);
    if (argc > 2)
        faults = ioctl(open("/dev/userfaultfd", O_RDWR | O_CLOEXEC), USERFAULTFD_IOC_NEW, O_CLOEXEC);
    else
        faults = syscall(SYS_userfaultfd, O_CLOEXEC);
    must(faults >= 0, "userfaultfd");
    struct uffdio_api api = {.api = UFFD_API};
    must(!ioctl(faults, UFFDIO_API, &api), "UFFDIO_API");
    char *memory = mmap((void *)0x100000000, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    must(memory != MAP_FAILED, "mmap");
    struct uffdio_register wanted = {.range = {(unsigned long)memory, PAGES * PAGE}, .mode = UFFDIO_REGISTER_MODE_MISSING};
    must(!ioctl(faults, UFFDIO_REGISTER, &wanted), "UFFDIO_REGISTER");
    pthread_t thread;
    must(!pthread_create(&thread, NULL, serve, NULL), "pthread_create");
    for (int i = 0; i < rounds; i++) {
        int at = i * 7 % PAGES;
        tell("%d %c\n", i, memory[at * PAGE + i]);
        if (i % 3 == 0)
            must(!madvise(memory + at * PAGE, PAGE, MADV_DONTNEED), "MADV_DONTNEED");
    }
    return 0;
}
