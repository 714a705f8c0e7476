/* program WHAT DOOR: takes part, and waits for a file before it goes on. */
#include "outlast.h"
#include <fcntl.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *what, *door;
static jmp_buf out;
static volatile int calls, pid;

static void say(const char *line)
{
    if (write(1, line, strlen(line)) < 0)
        _exit(9);
}

static void wait_at_the_door(void)
{
    while (access(door, F_OK))
        for (volatile int i = 0; i < 100000; i++)
            ;
}

static int is(const char *this)
{
    return !strcmp(what, this);
}

static void before(void *argument)
{
    char line[] = "before 0\n";
    line[7] += (char)++calls;
    say(line);
    if (is("slow"))
        wait_at_the_door();
    if (is("jump") && calls == 1)
        longjmp(out, 1);
    if (is("fork"))
        fork();
    if (is("crash"))
        *(volatile int *)argument = 1;
}

static void after(void *argument, int how)
{
    char line[] = "after 0 (0)\n";
    line[6] += (char)++calls;
    line[9] += (char)how;
    say(line);
    wait_at_the_door();
    (void)argument;
}

static unsigned long long commit(void)
{
    unsigned long long number = outlast_commit();
    say(number ? "committed\n" : "not committed\n");
    return number;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 9;
    what = argv[1], door = argv[2], pid = getpid();
    if (is("recovered")) {
        outlast_after_recovery(after, NULL);
        say("begin\n");
        char byte;
        return read(0, &byte, 1) != 0 ? 8 : calls;
    }
    outlast_before_commit(before, NULL);
    if (is("asked")) {
        say("begin\n");
        wait_at_the_door();
        return calls;
    }
    if (setjmp(out)) {
        say("jumped\n");
        commit();
        outlast_before_commit(before, NULL);
    }
    unsigned long long number = outlast_commit();
    if (getpid() != pid) /* the child of the function's fork: a copy that nobody protects */
        _exit(number || outlast_status(NULL) ? 1 : 7);
    say(number ? "committed\n" : "not committed\n");
    int status = 0;
    if (is("fork") && (wait(&status) < 0 || WEXITSTATUS(status) != 7))
        return 1;
    return outlast_status(NULL) ? 5 : 6;
}
