/* Code that comes and goes: codes ROUNDS. System calls from code made at run time, changed and made again at the same
 * place, and from libraries that are loaded and unloaded; often enough that their sites are worth rewriting. With the word
 * "strict" behind it under the policy that nothing written becomes executable (then without code of its own making). */
#define _GNU_SOURCE
#include "tell.h"
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

enum { PAGE = 4096, OFTEN = 300 };

/* mov $number, %eax; syscall; ret, after as many one-byte instructions as `pad` says. */
static long (*make(unsigned char *page, int pad, int number))(void)
{
    must(!mprotect(page, PAGE, PROT_READ | PROT_WRITE), "writable");
    memset(page, 0x90, 64);
    unsigned char code[] = { 0xb8, (unsigned char)number, (unsigned char)(number >> 8), 0, 0, 0x0f, 0x05, 0x90, 0x90, 0x90, 0xc3 };
    memcpy(page + pad, code, sizeof code);
    must(!mprotect(page, PAGE, PROT_READ | PROT_EXEC), "executable");
    return (long (*)(void))page;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 20, strict = argc > 2;
    unsigned char *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(page != MAP_FAILED, "mmap");
    if (strict)
        must(!prctl(65 /* PR_SET_MDWE */, 1, 0, 0, 0), "the policy (Linux 6.3)");
    for (int round = 0; round < rounds; round++) {
        long sum = 0;
        if (!strict) {
            int asks_parent = round & 1;
            long (*call)(void) = make(page, round % 7, asks_parent ? SYS_getppid : SYS_getpid);
            for (int i = 0; i < OFTEN; i++)
                sum += call() == (asks_parent ? getppid() : getpid());
            must(sum == OFTEN, "code made at run time");
        }
        void *library = dlopen("libz.so.1", RTLD_NOW);
        library = library ? library : dlopen("libm.so.6", RTLD_NOW);
        must(library != NULL, "dlopen");
        for (int i = 0; i < OFTEN; i++)
            must(syscall(SYS_getppid) == getppid(), "getppid");
        tell("round %d\n", round);
        must(!dlclose(library), "dlclose");
    }
    return 0;
}
