/* Sleeps in every way there is; a kill may make a sleep longer, never shorter. sleeper ROUNDS */
#define _GNU_SOURCE
#include "tell.h"
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/timerfd.h>
#include <time.h>

enum { NAP = 3000000 }; /* nanoseconds */

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void nap(int how)
{
    struct timespec span = {.tv_nsec = NAP};
    int64_t until = now() + NAP;
    struct timespec at = {until / 1000000000, until % 1000000000};
    switch (how) {
    case 0:
        must(!nanosleep(&span, NULL), "nanosleep");
        break;
    case 1:
        must(!clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL), "clock_nanosleep");
        break;
    case 2:
        must(!poll(NULL, 0, NAP / 1000000), "poll");
        break;
    case 3:
        must(!pselect(0, NULL, NULL, NULL, &span, NULL), "pselect");
        break;
    case 4: {
        int queue = epoll_create1(EPOLL_CLOEXEC);
        struct epoll_event event;
        must(queue >= 0 && !epoll_wait(queue, &event, 1, NAP / 1000000) && !close(queue), "epoll_wait");
        break;
    }
    default: {
        uint64_t expired;
        int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
        must(timer >= 0 && !timerfd_settime(timer, 0, &(struct itimerspec){.it_value = span}, NULL), "timerfd");
        must(read(timer, &expired, sizeof expired) == sizeof expired && expired == 1 && !close(timer), "read a timerfd");
    }
    }
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 60;
    int64_t last = 0;
    for (int i = 0; i < rounds; i++) {
        int64_t before = now();
        must(before >= last, "the clock went back");
        nap(i % 6);
        last = now();
        tell("nap %d long enough %d\n", i, last - before >= NAP);
    }
    return 0;
}
