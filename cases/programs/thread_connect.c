/* Threads of one process that talk to each other through a socket with no room for those who wait: thread_connect ROUNDS.
 * A connect waits for an accept of another thread, a read for a write. Prints a line each round. */
#define _GNU_SOURCE
#include "tell.h"
#include <pthread.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { CLIENTS = 4 };

static int rounds, listener;
static struct sockaddr_un address = { .sun_family = AF_UNIX };
static pthread_barrier_t meeting;

static void *serve(void *arg)
{
    for (int i = 0; i < rounds * CLIENTS; i++) {
        uint64_t number;
        int fd = accept(listener, 0, 0);
        must(fd >= 0, "accept");
        must(read(fd, &number, sizeof number) == sizeof number, "read");
        number = number * 3 + 1;
        must(write(fd, &number, sizeof number) == sizeof number, "write");
        must(!close(fd), "close");
    }
    return arg;
}

static void *ask(void *arg)
{
    for (int round = 0; round < rounds; round++) {
        uint64_t number = round, answer;
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        must(fd >= 0 && !connect(fd, (struct sockaddr *)&address, sizeof address), "connect");
        must(write(fd, &number, sizeof number) == sizeof number, "write");
        must(read(fd, &answer, sizeof answer) == sizeof answer && answer == number * 3 + 1, "answer");
        must(!close(fd), "close");
        pthread_barrier_wait(&meeting);
    }
    return arg;
}

int main(int argc, char **argv)
{
    rounds = argc > 1 ? atoi(argv[1]) : 20;
    /* In the room of the program: no other test has it. */
    strcpy(address.sun_path, "socket");
    listener = socket(AF_UNIX, SOCK_STREAM, 0);
    must(listener >= 0 && !bind(listener, (struct sockaddr *)&address, sizeof address), "bind");
    must(!listen(listener, 0), "listen");
    must(!pthread_barrier_init(&meeting, 0, CLIENTS + 1), "barrier");
    pthread_t server, clients[CLIENTS];
    must(!pthread_create(&server, 0, serve, 0), "create");
    for (int i = 0; i < CLIENTS; i++)
        must(!pthread_create(&clients[i], 0, ask, 0), "create");
    for (int round = 0; round < rounds; round++) {
        pthread_barrier_wait(&meeting);
        tell("round %d\n", round);
    }
    for (int i = 0; i < CLIENTS; i++)
        must(!pthread_join(clients[i], 0), "join");
    must(!pthread_join(server, 0), "join");
    must(!unlink("socket"), "unlink");
    return 0;
}
