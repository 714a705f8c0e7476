/* Calls that answer with an error the second time: joins and leaves multicast groups in every way, attaches and detaches filters, creates
   extended attributes, seals files. Each must succeed, and its opposite after it. */
#define _GNU_SOURCE
#include "tell.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <net/if.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/xattr.h>

static void set(int fd, int level, int option, const void *value, socklen_t len, const char *what)
{
    must(!setsockopt(fd, level, option, value, len), what);
}

static void fails(int fd, int level, int option, const void *value, socklen_t len, int error, const char *what)
{
    must(setsockopt(fd, level, option, value, len) && errno == error, what);
}

static struct group_source_req source_of(struct in_addr group, const char *source)
{
    struct group_source_req wanted = {.gsr_interface = if_nametoindex("lo")};
    *(struct sockaddr_in *)&wanted.gsr_group = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = group};
    struct sockaddr_in *from = (void *)&wanted.gsr_source;
    *from = (struct sockaddr_in){.sin_family = AF_INET};
    inet_pton(AF_INET, source, &from->sin_addr);
    return wanted;
}

static void groups(int i)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ip_mreqn by_number = {.imr_ifindex = if_nametoindex("lo")};
    struct ip_mreq by_address = {.imr_interface.s_addr = htonl(INADDR_LOOPBACK)};
    must(fd >= 0, "socket");
    by_number.imr_multiaddr.s_addr = by_address.imr_multiaddr.s_addr = htonl(0xefff0000 + i);
    set(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &by_number, sizeof by_number, "join by number");
    fails(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &by_number, sizeof by_number, EADDRINUSE, "join twice");
    set(fd, IPPROTO_IP, IP_DROP_MEMBERSHIP, &by_number, sizeof by_number, "leave by number");
    fails(fd, IPPROTO_IP, IP_DROP_MEMBERSHIP, &by_number, sizeof by_number, EADDRNOTAVAIL, "leave twice");
    set(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &by_address, sizeof by_address, "join by address");
    set(fd, IPPROTO_IP, IP_DROP_MEMBERSHIP, &by_address, sizeof by_address, "leave by address");

    struct group_source_req one = source_of(by_address.imr_multiaddr, "127.0.0.9");
    struct group_source_req other = source_of(by_address.imr_multiaddr, "127.0.0.10");
    set(fd, IPPROTO_IP, MCAST_JOIN_SOURCE_GROUP, &one, sizeof one, "join a source");
    set(fd, IPPROTO_IP, MCAST_JOIN_SOURCE_GROUP, &other, sizeof other, "join another source");
    fails(fd, IPPROTO_IP, MCAST_JOIN_SOURCE_GROUP, &other, sizeof other, EADDRNOTAVAIL, "join a source twice");
    set(fd, IPPROTO_IP, MCAST_LEAVE_SOURCE_GROUP, &one, sizeof one, "leave a source");
    set(fd, IPPROTO_IP, MCAST_LEAVE_SOURCE_GROUP, &other, sizeof other, "leave the last source");

    struct group_req group = {.gr_interface = one.gsr_interface};
    memcpy(&group.gr_group, &one.gsr_group, sizeof group.gr_group);
    set(fd, IPPROTO_IP, MCAST_JOIN_GROUP, &group, sizeof group, "join");
    set(fd, IPPROTO_IP, MCAST_BLOCK_SOURCE, &one, sizeof one, "block a source");
    set(fd, IPPROTO_IP, MCAST_UNBLOCK_SOURCE, &one, sizeof one, "unblock a source");
    set(fd, IPPROTO_IP, MCAST_LEAVE_GROUP, &group, sizeof group, "leave");
    must(!close(fd), "close");
}

static void groups6(int i)
{
    int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    struct ipv6_mreq wanted = {.ipv6mr_interface = if_nametoindex("lo")};
    inet_pton(AF_INET6, "ff01::7000", &wanted.ipv6mr_multiaddr);
    wanted.ipv6mr_multiaddr.s6_addr[14] = i;
    set(fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &wanted, sizeof wanted, "join with IPv6");
    fails(fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &wanted, sizeof wanted, EADDRINUSE, "join twice with IPv6");
    set(fd, IPPROTO_IPV6, IPV6_LEAVE_GROUP, &wanted, sizeof wanted, "leave with IPv6");
    must(!close(fd), "close");
}

static void filters(void)
{
    struct sock_filter all = BPF_STMT(BPF_RET | BPF_K, -1);
    struct sock_fprog program = {1, &all};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), none = 0;
    set(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program, "attach a filter");
    set(fd, SOL_SOCKET, SO_DETACH_FILTER, &none, sizeof none, "detach it");
    fails(fd, SOL_SOCKET, SO_DETACH_FILTER, &none, sizeof none, ENOENT, "detach it twice");
    must(!close(fd), "close");
}

static void attributes(void)
{
    int fd = open("attributed", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    must(fd >= 0, "open");
    if (!fsetxattr(fd, "user.made", "x", 1, XATTR_CREATE)) {
        must(fsetxattr(fd, "user.made", "y", 1, XATTR_CREATE) && errno == EEXIST, "create an attribute twice");
        must(!removexattr("attributed", "user.made"), "remove it");
        must(!setxattr("attributed", "user.made", "z", 1, XATTR_CREATE), "create it by name");
        must(!fremovexattr(fd, "user.made"), "remove it again");
    } else {
        must(errno == EOPNOTSUPP, "create an attribute");
    }
    must(!close(fd), "close");
}

static void seals(void)
{
    int fd = memfd_create("sealed", MFD_ALLOW_SEALING | MFD_CLOEXEC);
    must(fd >= 0, "memfd_create");
    must(!fcntl(fd, F_ADD_SEALS, F_SEAL_GROW), "seal");
    must(!fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL), "seal against sealing");
    must(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) && errno == EPERM, "seal what is sealed");
    must(!close(fd), "close");
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 100;
    for (int i = 0; i < rounds; i++) {
        groups(i + 1);
        groups6(i + 1);
        filters();
        attributes();
        seals();
        tell("%d\n", i);
    }
    return 0;
}
