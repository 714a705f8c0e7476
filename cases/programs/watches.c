/* inotify in use: watches ROUNDS. Files are made, written, renamed, removed, and their folder watched; so is a folder within it, now and
 * then, by a watch that comes and goes. Every event is told, in its order. */
#define _GNU_SOURCE
#include "tell.h"
#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>

enum { KINDS = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB };

static int watch;

static void tell_all(void)
{
    char buffer[4096] __attribute__((aligned(8)));
    ssize_t n;
    uint32_t cookie = 0;
    while ((n = read(watch, buffer, sizeof buffer)) > 0) {
        struct inotify_event *event;
        for (char *p = buffer; p < buffer + n; p += sizeof *event + event->len) {
            event = (struct inotify_event *)p;
            if (event->mask & IN_MOVED_FROM)
                cookie = event->cookie;
            /* Both ends of a move have the same one, where both are watched. */
            if (event->mask & IN_MOVED_TO) {
                must(event->cookie && (!cookie || event->cookie == cookie), "the cookie");
                cookie = 0;
            }
            tell("  %d %x %s\n", event->wd, event->mask, event->len ? event->name : "");
        }
    }
    must(n == -1 && errno == EAGAIN, "read");
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 50;
    must(!mkdir("watched", 0755) && !mkdir("watched/inner", 0755), "mkdir");
    watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    must(watch >= 0, "inotify_init1");
    int outer = inotify_add_watch(watch, "watched", KINDS), inner = -1;
    must(outer > 0, "inotify_add_watch");
    for (int round = 0; round < rounds; round++) {
        char name[64], other[64];
        snprintf(name, sizeof name, "watched/%s%d", round % 2 ? "inner/" : "", round);
        snprintf(other, sizeof other, "watched/%d.new", round);
        tell("%d\n", round);
        if (round % 4 == 0) {
            inner = inotify_add_watch(watch, "watched/inner", KINDS);
            must(inner > outer, "another watch");
        }
        int fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0644);
        must(fd >= 0 && write(fd, name, strlen(name)) > 0 && !close(fd), "a file");
        must(!chmod(name, 0600), "chmod");
        if (round % 3 == 0)
            tell_all();
        must(!rename(name, other), "rename");
        must(!unlink(other), "unlink");
        if (round % 4 == 2)
            must(!inotify_rm_watch(watch, inner), "inotify_rm_watch");
        tell_all();
    }
    must(!rmdir("watched/inner") && !rmdir("watched"), "rmdir");
    tell_all();
    return 0;
}
