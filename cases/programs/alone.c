/* Objects of the kernel's that have no name, and that a program has all to itself: counters, timers, signals, epolls within each other, pipes
 * and pairs of sockets. Each is as the program has left it, whatever became of it meanwhile: what lies in each, in which order, which
 * are ready, which are told of once. A line a round. alone ROUNDS */
#define _GNU_SOURCE
#include "tell.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>

enum { PIPE, STREAM, GRAMS, PACKETS, COUNTER, TOKENS, FILES };

static int inner, outer, from[FILES], to[FILES], signals, timer, late, again;
static uint64_t state = 4711;
/* What was put into each, and what was taken; and how much of it still lies there, of messages how many. */
static uint64_t put[FILES], taken[FILES], held[FILES];
static int armed[FILES];

static uint64_t word_of(int i)
{
    return 0xabcd000000000000 | (uint64_t)i << 20 | (uint64_t)i;
}

static struct epoll_event event_of(int i)
{
    uint32_t events = EPOLLIN | (i == STREAM || i == TOKENS ? EPOLLONESHOT : 0);
    return (struct epoll_event){ .events = events, .data.u64 = word_of(i) };
}

static void open_all(void)
{
    int kinds[FILES] = { [STREAM] = SOCK_STREAM, [GRAMS] = SOCK_DGRAM, [PACKETS] = SOCK_SEQPACKET };
    must((outer = epoll_create1(0)) >= 0 && (inner = epoll_create1(EPOLL_CLOEXEC)) >= 0, "epoll_create1");
    for (int i = 0; i < FILES; i++) {
        int ends[2];
        if (i == PIPE)
            must(!pipe2(ends, O_NONBLOCK), "pipe2");
        else if (i == COUNTER || i == TOKENS)
            must((ends[0] = eventfd(0, EFD_NONBLOCK | (i == TOKENS ? EFD_SEMAPHORE : 0))) >= 0 &&
                     (ends[1] = dup(ends[0])) >= 0, "eventfd");
        else
            must(!socketpair(AF_UNIX, kinds[i] | SOCK_NONBLOCK, 0, ends), "socketpair");
        from[i] = ends[0], to[i] = ends[1];
        /* Numbers with gaps, and another one of the same. */
        int other = dup(from[i]);
        must(other >= 0 && !close(i & 1 ? from[i] : other), "dup");
        from[i] = i & 1 ? other : from[i];
        struct epoll_event event = event_of(i);
        must(!epoll_ctl(inner, EPOLL_CTL_ADD, from[i], &event), "epoll_ctl");
        armed[i] = 1;
    }
    struct epoll_event event = { .events = EPOLLIN, .data.u64 = 7 };
    must(!epoll_ctl(outer, EPOLL_CTL_ADD, inner, &event), "epoll_ctl");
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    must(!sigprocmask(SIG_BLOCK, &set, NULL) && (signals = signalfd(-1, &set, SFD_NONBLOCK)) >= 0, "signalfd");
    must((timer = timerfd_create(CLOCK_MONOTONIC, 0)) >= 0 && (late = timerfd_create(CLOCK_BOOTTIME, 0)) >= 0 &&
             (again = timerfd_create(CLOCK_REALTIME, 0)) >= 0, "timerfd_create");
    struct itimerspec far = { .it_value.tv_sec = 100000 }, often = { { 0, 1000000 }, { 0, 1000000 } };
    must(!timerfd_settime(late, 0, &far, NULL) && !timerfd_settime(again, 0, &often, NULL), "timerfd_settime");
}

/* Bytes that tell where in the whole they are. */
static void fill(unsigned char *bytes, uint64_t at, size_t len)
{
    for (size_t k = 0; k < len; k++)
        bytes[k] = (unsigned char)((at + k) * 31 + ((at + k) >> 8));
}

static int is_stream(int i)
{
    return i == PIPE || i == STREAM;
}

static void put_some(int i)
{
    unsigned char bytes[3000];
    size_t len = 1 + next(&state) % (i == PIPE ? 3000 : 300);
    if (i == COUNTER || i == TOKENS) {
        uint64_t n = i == TOKENS ? 1 + len % 3 : len;
        must(write(to[i], &n, 8) == 8, "write to a counter");
        held[i] += n, put[i] += n;
        return;
    }
    if (held[i] > (is_stream(i) ? 40000 : 7))
        return;
    fill(bytes, put[i], len);
    must(write(to[i], bytes, len) == (ssize_t)len, "write");
    put[i] += len, held[i] += is_stream(i) ? len : 1;
}

static void take_some(int i)
{
    unsigned char bytes[4096], expected[4096];
    if (i == COUNTER || i == TOKENS) {
        uint64_t n = 0;
        ssize_t r = read(from[i], &n, 8);
        must(held[i] ? r == 8 && n == (i == TOKENS ? 1 : held[i]) : r < 0 && errno == EAGAIN, "the count");
        held[i] -= n, taken[i] += n;
        return;
    }
    size_t most = is_stream(i) ? 1 + next(&state) % 4000 : sizeof bytes;
    ssize_t r = read(from[i], bytes, most);
    if (!held[i]) {
        must(r < 0 && errno == EAGAIN, "nothing is there");
        return;
    }
    must(r > 0 && (!is_stream(i) || (size_t)r == (held[i] < most ? held[i] : most)), "read what is there");
    fill(expected, taken[i], r);
    must(!memcmp(bytes, expected, r), "read what was written");
    taken[i] += r, held[i] -= is_stream(i) ? (uint64_t)r : 1;
}

/* Who is ready is who holds something; of some that is told once until they are armed again. */
static void look(void)
{
    struct epoll_event events[FILES + 1];
    int any = 0, told[FILES] = {0};
    for (int i = 0; i < FILES; i++)
        any |= held[i] && armed[i];
    int n = epoll_wait(outer, events, 2, 0);
    must(n == any && (!n || events[0].data.u64 == 7), "the outer epoll");
    n = epoll_wait(inner, events, FILES + 1, 0);
    for (int k = 0; k < n; k++) {
        int i = events[k].data.u64 & 0xffff;
        must(i < FILES && events[k].data.u64 == word_of(i) && events[k].events == EPOLLIN && !told[i], "an event");
        told[i] = 1;
    }
    for (int i = 0; i < FILES; i++) {
        must(told[i] == (held[i] && armed[i]), "who is ready");
        if (told[i] && (event_of(i).events & EPOLLONESHOT))
            armed[i] = 0;
        if (!armed[i] && next(&state) % 3 == 0) {
            struct epoll_event event = event_of(i);
            must(!epoll_ctl(inner, EPOLL_CTL_MOD, from[i], &event), "arm again");
            armed[i] = 1;
        }
    }
}

static void time_passes(void)
{
    struct itimerspec soon = { .it_value.tv_nsec = 1 + next(&state) % 300000 }, left;
    uint64_t n = 0;
    must(!timerfd_settime(timer, 0, &soon, NULL) && read(timer, &n, 8) == 8 && n == 1, "a timer that expires once");
    must(!timerfd_gettime(timer, &left) && !left.it_value.tv_sec && !left.it_value.tv_nsec, "it is not set any more");
    must(!timerfd_gettime(late, &left) && left.it_value.tv_sec > 99000 && left.it_value.tv_sec < 100000, "a late timer");
    must(read(again, &n, 8) == 8 && n >= 1, "a timer that expires often");
}

/* How often that one has expired, however often nobody looked. */
static void count_times(const struct timespec *begun)
{
    static uint64_t sum;
    uint64_t n = 0;
    struct timespec now;
    must(read(again, &n, 8) == 8, "read a timer");
    sum += n;
    clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t passed = (now.tv_sec - begun->tv_sec) * 1000 + (now.tv_nsec - begun->tv_nsec) / 1000000;
    must(passed >= 0, "time passes");
}

static void signal_self(int round)
{
    struct signalfd_siginfo info;
    int sig = round & 1 ? SIGUSR1 : SIGUSR2;
    must(!kill(getpid(), sig), "kill");
    must(read(signals, &info, sizeof info) == sizeof info && (int)info.ssi_signo == sig, "the signal");
    must(read(signals, &info, sizeof info) < 0 && errno == EAGAIN, "no other signal");
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 100;
    struct timespec begun;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    open_all();
    for (int round = 0; round < rounds; round++) {
        for (int k = 0; k < 6; k++) {
            int i = next(&state) % FILES;
            next(&state) % 2 ? put_some(i) : take_some(i);
        }
        look();
        if (round % 4 == 0)
            signal_self(round / 4);
        if (round % 8 == 0)
            time_passes(), count_times(&begun);
        uint64_t sum = mix(mix(1, put, sizeof put), taken, sizeof taken);
        tell("%d %016llx\n", round, (unsigned long long)sum);
    }
    for (int i = 0; i < FILES; i++) {
        close(to[i]);
        while (held[i])
            take_some(i);
    }
    char rest[8];
    must(read(from[PIPE], rest, 8) == 0 && read(from[STREAM], rest, 8) == 0, "the ends");
    tell("end\n");
}
