//! Commands of fcntl, ioctl, prctl and arch_prctl. Each test has the name of its command.

use crate::arena::{bytes, unique_path, Arena};
use crate::probe::probes;
use std::fs::{File, OpenOptions};
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

fn file(arena: &mut Arena) -> u64 {
    let path = unique_path("command");
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).expect("a directory for tests");
    std::fs::remove_file(&path).expect("our own file");
    file.set_len(500).expect("room on the disk");
    keep(arena, file)
}

fn keep(arena: &mut Arena, thing: impl AsRawFd + 'static) -> u64 {
    let fd = thing.as_raw_fd() as u64;
    arena.keep(thing);
    fd
}

/// The leading end of a pseudo-terminal.
fn terminal(arena: &mut Arena) -> u64 {
    keep(arena, OpenOptions::new().read(true).write(true).open("/dev/ptmx").expect("pseudo-terminals"))
}

fn socket(arena: &mut Arena) -> u64 {
    keep(arena, UdpSocket::bind("127.0.0.1:0").expect("loopback"))
}

/// A `struct ifreq` in the slot, with the name of the loopback interface; its index in the rest.
fn loopback(arena: &mut Arena) -> (usize, u64) {
    let mut request = [0; 40];
    request[..2].copy_from_slice(b"lo");
    request[16] = 1;
    (2, arena.put(2, &request))
}

/// A `struct flock` for the whole file.
fn lock(arena: &mut Arena) -> (usize, u64) {
    (2, arena.put(2, &bytes(&[1, 0, 0, 0])))
}

probes! {
    f_getlk(fcntl) Success arena => vec![(0, file(arena)), (1, 5), lock(arena)];
    f_ofd_getlk(fcntl) Success arena => vec![(0, file(arena)), (1, 36), lock(arena)];
    f_getown_ex(fcntl) Success arena => vec![(0, file(arena)), (1, 16)];
    f_getowner_uids(fcntl) Support arena => vec![(0, file(arena)), (1, 17)];
    f_get_rw_hint(fcntl) Success arena => vec![(0, file(arena)), (1, 1035)];
    f_get_file_rw_hint(fcntl) Answer arena => vec![(0, file(arena)), (1, 1037)];
    f_getfl(fcntl) Success arena => vec![(0, file(arena)), (1, 3)];

    tcgets(ioctl) Success arena => vec![(0, terminal(arena)), (1, 0x5401)];
    tcgeta(ioctl) Success arena => vec![(0, terminal(arena)), (1, 0x5405)];
    tcgets2(ioctl) Success arena => vec![(0, terminal(arena)), (1, 0x802c_542a)];
    tiocoutq(ioctl) Success arena => vec![(0, terminal(arena)), (1, 0x5411)];
    tiocgwinsz(ioctl) Success arena => vec![(0, terminal(arena)), (1, 0x5413)];
    tiocgetd(ioctl) Success arena => vec![(0, terminal(arena)), (1, 0x5424)];
    tiocgptn(ioctl) Success arena => vec![(0, terminal(arena)), (1, 0x8004_5430)];
    tiocgdev(ioctl) Success arena => vec![(0, terminal(arena)), (1, 0x8004_5432)];
    tiocgpkt(ioctl) Success arena => vec![(0, terminal(arena)), (1, 0x8004_5438)];
    tiocgptlck(ioctl) Success arena => vec![(0, terminal(arena)), (1, 0x8004_5439)];
    tiocgexcl(ioctl) Success arena => vec![(0, terminal(arena)), (1, 0x8004_5440)];
    fionread(ioctl) Success arena => vec![(0, file(arena)), (1, 0x541b)];
    fioqsize(ioctl) Success arena => vec![(0, file(arena)), (1, 0x5460)];
    fiogetown(ioctl) Success arena => vec![(0, socket(arena)), (1, 0x8903)];
    siocgpgrp(ioctl) Success arena => vec![(0, socket(arena)), (1, 0x8904)];
    siocatmark(ioctl) Success arena => {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback");
        vec![(0, keep(arena, listener)), (1, 0x8905)]
    };
    siocgifname(ioctl) Success[2] arena => {
        let request = [vec![0; 16], 1_u32.to_ne_bytes().to_vec(), vec![0; 20]].concat();
        vec![(0, socket(arena)), (1, 0x8910), (2, arena.put(2, &request))]
    };
    siocgifflags(ioctl) Success arena => vec![(0, socket(arena)), (1, 0x8913), loopback(arena)];
    siocgifaddr(ioctl) Success arena => vec![(0, socket(arena)), (1, 0x8915), loopback(arena)];
    siocgifnetmask(ioctl) Success arena => vec![(0, socket(arena)), (1, 0x891b), loopback(arena)];
    siocgifmetric(ioctl) Success arena => vec![(0, socket(arena)), (1, 0x891d), loopback(arena)];
    siocgifmtu(ioctl) Success arena => vec![(0, socket(arena)), (1, 0x8921), loopback(arena)];
    siocgifhwaddr(ioctl) Success arena => vec![(0, socket(arena)), (1, 0x8927), loopback(arena)];
    siocgifindex(ioctl) Success[2] arena => vec![(0, socket(arena)), (1, 0x8933), loopback(arena)];
    siocgiftxqlen(ioctl) Success arena => vec![(0, socket(arena)), (1, 0x8942), loopback(arena)];
    siocgifmap(ioctl) Success[2] arena => vec![(0, socket(arena)), (1, 0x8970), loopback(arena)];
    fs_ioc_getflags(ioctl) Support arena => vec![(0, file(arena)), (1, 0x8008_6601)];
    fs_ioc_getversion(ioctl) Support arena => vec![(0, file(arena)), (1, 0x8008_7601)];
    fs_ioc_fsgetxattr(ioctl) Support arena => vec![(0, file(arena)), (1, 0x801c_581f)];
    ns_get_nstype(ioctl) Support arena => {
        let namespace = File::open("/proc/self/ns/pid").expect("procfs");
        vec![(0, keep(arena, namespace)), (1, 0xb703)]
    };

    pr_get_pdeathsig(prctl) Success _arena => vec![(0, 2)];
    pr_get_dumpable(prctl) Success _arena => vec![(0, 3)];
    pr_get_name(prctl) Success _arena => vec![(0, 16)];
    pr_get_tsc(prctl) Success _arena => vec![(0, 25)];
    pr_get_child_subreaper(prctl) Success _arena => vec![(0, 37)];
    pr_get_tid_address(prctl) Support arena => {
        let word = arena.scratch(&[0; 4]);
        arena.first("set_tid_address", &[word]);
        vec![(0, 40), (2, 0), (3, 0), (4, 0)]
    };
    pr_get_auxv(prctl) Support _arena => vec![(0, 0x4155_5856), (2, 100), (3, 0), (4, 0)];

    arch_get_fs(arch_prctl) Success _arena => vec![(0, 0x1003)];
    arch_get_xcomp_supp(arch_prctl) Answer _arena => vec![(0, 0x1021)];
    arch_get_xcomp_perm(arch_prctl) Answer _arena => vec![(0, 0x1022)];
    arch_get_untag_mask(arch_prctl) Answer _arena => vec![(0, 0x4001)];
    arch_get_max_tag_bits(arch_prctl) Answer _arena => vec![(0, 0x4003)];
    arch_shstk_status(arch_prctl) Answer _arena => vec![(0, 0x5005)];
}
