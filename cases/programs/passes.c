/* Descriptors and credentials on their way (SCM_RIGHTS, SCM_CREDENTIALS): passes ROUNDS [number]. Over pairs of sockets of three kinds go
 * files, and who sent them; what arrives is used. Some are on their way while others are sent, and some end there, unread. With `number` it
 * is looked at by which number the kernel knows the sender. */
#define _GNU_SOURCE
#include "tell.h"
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

enum { KINDS = 3, MOST = 3 };

static int by_number;
static const int KIND[KINDS] = { SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET };

union control {
    struct cmsghdr head;
    char bytes[CMSG_SPACE(MOST * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
};

static void pass(int to, int number, const int *files, int count)
{
    union control control = { 0 };
    struct iovec data = { &number, sizeof number };
    struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = CMSG_SPACE(count * sizeof(int)) };
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(count * sizeof(int));
    memcpy(CMSG_DATA(head), files, count * sizeof(int));
    must(sendmsg(to, &message, 0) == sizeof number, "sendmsg");
}

/* How many files came; their numbers go to `files`. */
static int take(int from, int number, int *files)
{
    union control control = { 0 };
    int got = -1, count = 0, is_known = 0;
    struct iovec data = { &got, sizeof got };
    struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control };
    must(recvmsg(from, &message, MSG_CMSG_CLOEXEC) == sizeof got && got == number, "recvmsg");
    must(!(message.msg_flags & MSG_CTRUNC), "room for control data");
    for (struct cmsghdr *head = CMSG_FIRSTHDR(&message); head; head = CMSG_NXTHDR(&message, head)) {
        if (head->cmsg_type == SCM_RIGHTS) {
            count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
            memcpy(files, CMSG_DATA(head), count * sizeof(int));
        } else if (head->cmsg_type == SCM_CREDENTIALS) {
            struct ucred who;
            memcpy(&who, CMSG_DATA(head), sizeof who);
            must((!by_number || who.pid == getpid()) && who.uid == getuid() && who.gid == getgid(), "who sent it");
            is_known = 1;
        }
    }
    must(is_known, "credentials");
    return count;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 100, pair[KINDS][2], one = 1;
    by_number = argc > 2;
    for (int kind = 0; kind < KINDS; kind++) {
        must(!socketpair(AF_UNIX, KIND[kind] | SOCK_CLOEXEC, 0, pair[kind]), "socketpair");
        must(!setsockopt(pair[kind][1], SOL_SOCKET, SO_PASSCRED, &one, sizeof one), "SO_PASSCRED");
    }
    for (int round = 0; round < rounds; round++) {
        int kind = round % KINDS, count = 1 + round % MOST, tube[2], file = open("file", O_RDWR | O_CREAT, 0644), got[MOST], more[MOST];
        must(file >= 0 && !pipe2(tube, O_CLOEXEC), "open");
        int files[MOST] = { tube[1], file, tube[0] };
        must(pwrite(file, &round, sizeof round, 0) == sizeof round && lseek(file, 2, SEEK_SET) == 2, "write");
        pass(pair[kind][0], round, files, count);
        pass(pair[kind][0], -round, files, 1);
        /* From here on what is under way alone keeps it open. */
        must(!close(file) && !close(tube[1]), "close");
        tell("%d sent\n", round);
        must(take(pair[kind][1], round, got) == count, "how many");
        must(fcntl(got[0], F_GETFD) == FD_CLOEXEC, "the flag");
        must(write(got[0], "passed", 6) == 6, "to the pipe");
        if (count > 1) {
            int seen = -1;
            must(pread(got[1], &seen, sizeof seen, 0) == sizeof seen && seen == round && lseek(got[1], 0, SEEK_CUR) == 2, "the file");
        }
        must(take(pair[kind][1], -round, more) == 1 && write(more[0], "again\n", 6) == 6, "the second");
        must(!close(more[0]), "close");
        for (int i = 0; i < count; i++)
            must(!close(got[i]), "close");
        char text[16] = "";
        must(read(tube[0], text, sizeof text) == 12 && read(tube[0], text + 12, 1) == 0, "what the pipe holds, and its end");
        must(!close(tube[0]), "close");
        tell("%d %.11s\n", round, text);
        if (round % 10 == 9) {
            /* What nobody takes ends with the pair. */
            must(!pipe2(tube, O_CLOEXEC), "pipe2");
            pass(pair[kind][0], 7, tube + 1, 1);
            must(!close(tube[1]), "close");
            tell("%d is given up\n", round);
            must(!close(pair[kind][0]) && !close(pair[kind][1]), "close");
            must(read(tube[0], text, sizeof text) == 0, "the end");
            must(!close(tube[0]), "close");
            must(!socketpair(AF_UNIX, KIND[kind] | SOCK_CLOEXEC, 0, pair[kind]), "socketpair");
            must(!setsockopt(pair[kind][1], SOL_SOCKET, SO_PASSCRED, &one, sizeof one), "SO_PASSCRED");
        }
    }
    must(!unlink("file"), "unlink");
    return 0;
}
