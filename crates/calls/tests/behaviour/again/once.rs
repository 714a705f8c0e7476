//! Once: the witness is not there before, is there after, and a second call fails.

use super::{file, free};
use crate::arena::Arena;
use crate::child::{call_in_child, in_child};
use crate::raw::{call, make, must, syscall};
use outlast_calls::{again, row, Class, Place, Witness, TABLE};
use std::collections::BTreeSet;

const AT_FDCWD: u64 = -100_i64 as u64;
const AT_SYMLINK_NOFOLLOW_EMPTY_PATH: u64 = 0x1100;
const AT_REMOVEDIR: u64 = 0x200;
const SOL_SOCKET: u64 = 1;
const SO_ACCEPTCONN: u64 = 30;
const SO_ATTACH_FILTER: u64 = 26;
const SO_GET_FILTER: u64 = 26;
const SO_DETACH_FILTER: u64 = 27;
const SOL_IP: u64 = 0;
const IP_ADD_MEMBERSHIP: u64 = 35;
const IP_MSFILTER: u64 = 41;
const XATTR_CREATE: u64 = 1;
const MFD_ALLOW_SEALING: u64 = 2;
const F_ADD_SEALS: u64 = 1033;
const F_GET_SEALS: u64 = 1034;
const F_SEAL_SEAL: u64 = 1;
const SHUT_RDWR: u64 = 2;
const ENODATA: i64 = -61;
const EOPNOTSUPP: i64 = -95;

/// The inode number behind a place, if there is one.
fn inode(arena: &mut Arena, place: Place, args: &[u64; 6]) -> Option<u64> {
    let empty = arena.text("");
    let stat = arena.scratch(&[0; 144]);
    let dir = place.dir.map_or(AT_FDCWD, |arg| args[arg as usize]);
    let path = place.path.map_or(empty, |arg| args[arg as usize]);
    let found = make("newfstatat", [dir, path, stat, AT_SYMLINK_NOFOLLOW_EMPTY_PATH]);
    // SAFETY: 144 bytes of scratch memory, the inode number at 8.
    (found == 0).then(|| unsafe { (stat as *const u64).add(1).read_volatile() })
}

/// A path for a place, by its descriptor where the path is not among the arguments.
fn path_of(arena: &mut Arena, place: Place, args: &[u64; 6]) -> u64 {
    match (place.dir, place.path) {
        (Some(fd), None) => arena.text(&format!("/proc/self/fd/{}", args[fd as usize])),
        (_, path) => args[path.expect("a path") as usize],
    }
}

/// What the witness says now: a number that changes when the call happens.
fn look(arena: &mut Arena, witness: Witness, args: &[u64; 6]) -> Option<u64> {
    match witness {
        Witness::Created(place) | Witness::Removed(place) => inode(arena, place, args),
        Witness::Moved { to, .. } => inode(arena, to, args),
        Witness::AttributeRemoved { of, name } | Witness::AttributeMade { of, name } => {
            let path = path_of(arena, of, args);
            let gone = make("getxattr", [path, args[name as usize], 0, 0]) == ENODATA;
            (!gone).then_some(1)
        }
        Witness::Bound => {
            let (address, len) = (arena.scratch(&[0; 128]), arena.scratch(&128_u32.to_ne_bytes()));
            must("getsockname", [args[0], address, len]);
            // SAFETY: scratch memory, a family of two bytes and an address behind it.
            let port = unsafe { (address as *const u16).add(1).read_volatile() };
            (port != 0).then_some(1)
        }
        Witness::Connected => {
            let (address, len) = (arena.scratch(&[0; 128]), arena.scratch(&128_u32.to_ne_bytes()));
            (make("getpeername", [args[0], address, len]) == 0).then_some(1)
        }
        Witness::Shut => {
            let (listens, len) = (arena.scratch(&[0; 4]), arena.scratch(&4_u32.to_ne_bytes()));
            must("getsockopt", [args[0], SOL_SOCKET, SO_ACCEPTCONN, listens, len]);
            // SAFETY: scratch memory.
            (unsafe { (listens as *const u32).read_volatile() } == 1).then_some(1)
        }
        Witness::Sealed => (must("fcntl", [args[0], F_GET_SEALS]) != 0).then_some(1),
        Witness::Member => {
            // SAFETY: the argument of these tests: a group and an interface's address.
            let [group, interface] = unsafe { (args[3] as *const [u32; 2]).read_volatile() };
            let filter: Vec<u8> = [group, interface, 0, 0].into_iter().flat_map(u32::to_ne_bytes).collect();
            let (filter, len) = (arena.scratch(&filter), arena.scratch(&16_u32.to_ne_bytes()));
            (make("getsockopt", [args[0], args[1], IP_MSFILTER, filter, len]) == 0).then_some(1)
        }
        Witness::Option => {
            let len = arena.scratch(&[0; 4]);
            must("getsockopt", [args[0], SOL_SOCKET, SO_GET_FILTER, 0, len]);
            // SAFETY: scratch memory.
            (unsafe { (len as *const u32).read_volatile() } > 0).then_some(1)
        }
        Witness::Leader | Witness::Moving | Witness::None => panic!("looked at in a test of its own"),
    }
}

fn witnessed(name: &str, setup: impl Fn(&mut Arena) -> Vec<u64>) {
    let mut arena = Arena::new(0);
    let given = setup(&mut arena);
    let (nr, args) = call(name, &given);
    let witness = again(nr, &args).unwrap_or_else(|| row(nr).expect("the row").witness);
    let from = match witness {
        Witness::Moved { from, .. } => inode(&mut arena, from, &args),
        _ => None,
    };
    let before = look(&mut arena, witness, &args);
    let result = call_in_child(&arena, nr, args);
    if result == EOPNOTSUPP {
        println!("skipped: not supported here");
        return;
    }
    assert!(result >= 0, "{name}: error {}", -result);
    let after = look(&mut arena, witness, &args);
    match witness {
        Witness::Option | Witness::Removed(_) | Witness::AttributeRemoved { .. } | Witness::Shut => {
            assert!(before.is_some() && after.is_none(), "{name}")
        }
        Witness::Moved { from: old, .. } => {
            assert!(from.is_some() && before != after && after == from, "{name}");
            assert_eq!(inode(&mut arena, old, &args), None, "{name}");
        }
        _ => assert!(before.is_none() && after.is_some(), "{name}"),
    }
    if name != "creat" {
        let again = call_in_child(&arena, nr, args);
        assert!(again < 0, "{name} a second time succeeds: it would be Redo");
    }
}

fn attributed(arena: &mut Arena) -> (u64, u64) {
    let (path, name) = (file(arena), arena.text("user.outlast"));
    make("setxattr", [path, name, path, 5, 0]);
    (path, name)
}

fn directory(arena: &mut Arena) -> u64 {
    let path = free(arena);
    must("mkdir", [path, 0o700]);
    path
}

/// A socket, and an IPv4 loopback address with a port: of a listener, or 0.
fn socket(arena: &mut Arena, port: u16) -> [u64; 3] {
    let fd = must("socket", [2, 1, 0]);
    arena.finally(move || must("close", [fd]));
    let mut address = [2, 0, 0, 0, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    address[2..4].copy_from_slice(&port.to_be_bytes());
    [fd, arena.input(&address), 16]
}

macro_rules! once {
    ($($test:ident $arena:ident => $args:expr;)*) => {
        const MADE: &[&str] = &["setsid", "chdir", $(stringify!($test)),*];

        $(
            #[test]
            fn $test() {
                witnessed(stringify!($test), |$arena| $args.to_vec());
            }
        )*
    };
}

once! {
    creat a => [free(a), 0o600];
    mkdir a => [free(a), 0o700];
    mkdirat a => [AT_FDCWD, free(a), 0o700];
    mknod a => [free(a), 0o010_600, 0];
    mknodat a => [AT_FDCWD, free(a), 0o010_600, 0];
    rmdir a => [directory(a)];
    unlink a => [file(a)];
    unlinkat a => [AT_FDCWD, directory(a), AT_REMOVEDIR];
    rename a => [file(a), free(a)];
    renameat a => [AT_FDCWD, file(a), AT_FDCWD, free(a)];
    renameat2 a => [AT_FDCWD, file(a), AT_FDCWD, free(a), 0];
    link a => [file(a), free(a)];
    linkat a => [AT_FDCWD, file(a), AT_FDCWD, free(a), 0];
    symlink a => [a.text("nowhere"), free(a)];
    symlinkat a => [a.text("nowhere"), AT_FDCWD, free(a)];
    removexattr a => <[u64; 2]>::from(attributed(a));
    lremovexattr a => <[u64; 2]>::from(attributed(a));
    fremovexattr a => {
        let (path, name) = attributed(a);
        let fd = must("open", [path, 0]);
        a.finally(move || must("close", [fd]));
        [fd, name]
    };
    removexattrat a => {
        let (path, name) = attributed(a);
        [AT_FDCWD, path, 0, name]
    };
    bind a => socket(a, 0);
    shutdown a => {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback");
        let fd = std::os::fd::AsRawFd::as_raw_fd(&listener) as u64;
        a.keep(listener);
        [fd, SHUT_RDWR]
    };
    connect a => {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback");
        let port = listener.local_addr().expect("its address").port();
        a.keep(listener);
        socket(a, port)
    };
}

#[test]
fn setxattr_creates_once() {
    for name in ["setxattr", "lsetxattr"] {
        witnessed(name, |a| vec![file(a), a.text("user.outlast"), a.text("value"), 5, XATTR_CREATE]);
    }
    witnessed("fsetxattr", |a| {
        let path = file(a);
        let fd = must("open", [path, 0]);
        a.finally(move || must("close", [fd]));
        vec![fd, a.text("user.outlast"), a.text("value"), 5, XATTR_CREATE]
    });
}

#[test]
fn a_file_is_sealed_against_sealing_once() {
    witnessed("fcntl", |a| {
        let fd = must("memfd_create", [a.text("sealed"), MFD_ALLOW_SEALING]);
        a.finally(move || must("close", [fd]));
        vec![fd, F_ADD_SEALS, F_SEAL_SEAL]
    });
}

/// A datagram socket, and the group 239.255.7.1 on the interface of 127.0.0.1.
fn group(arena: &mut Arena) -> (u64, u64) {
    let fd = must("socket", [2, 2, 0]);
    arena.finally(move || must("close", [fd]));
    (fd, arena.input(&[239, 255, 7, 1, 127, 0, 0, 1]))
}

#[test]
fn a_group_is_joined_once() {
    witnessed("setsockopt", |a| {
        let (fd, group) = group(a);
        vec![fd, SOL_IP, IP_ADD_MEMBERSHIP, group, 8]
    });
}

#[test]
fn a_filter_is_detached_once() {
    witnessed("setsockopt", |a| {
        let (fd, _) = group(a);
        // `struct sock_filter`: all of it is accepted.
        let filter = a.input(&[6, 0, 0, 0, 255, 255, 255, 255]);
        let program: Vec<u8> = [1, filter].into_iter().flat_map(u64::to_ne_bytes).collect();
        let program = a.input(&program);
        must("setsockopt", [fd, SOL_SOCKET, SO_ATTACH_FILTER, program, 16]);
        vec![fd, SOL_SOCKET, SO_DETACH_FILTER, a.input(&[0; 4]), 4]
    });
}

#[test]
fn setsid_makes_a_leader_once() {
    const GETPID: u64 = 39;
    const GETSID: u64 = 124;
    let (setsid, none) = call("setsid", &[]);
    let mut arena = Arena::new(0);
    let seen = arena.scratch(&[0; 16]) as *mut [i64; 2];
    // SAFETY: both calls touch no memory; the scratch memory is shared with the child and no one else.
    let look = || unsafe { seen.write_volatile([syscall(GETSID, [0; 6]), syscall(GETPID, [0; 6])]) };

    assert!(in_child(&arena, setsid, none, look) > 0);
    // SAFETY: the child has written both, and is gone.
    let [session, process] = unsafe { seen.read_volatile() };
    assert_ne!(session, process, "no leader before");

    arena.first("setsid", &[]);
    assert!(in_child(&arena, setsid, none, look) < 0, "setsid a second time");
    // SAFETY: the child has written both, and is gone.
    let [session, process] = unsafe { seen.read_volatile() };
    assert_eq!(session, process, "the leader after");
}

#[test]
fn chdir_leads_elsewhere_a_second_time() {
    let mut arena = Arena::new(0);
    let (root, usr) = (arena.text("/"), arena.text("usr"));
    let (chdir, args) = call("chdir", &[usr]);
    arena.first("chdir", &[root]);
    assert_eq!(call_in_child(&arena, chdir, args), 0);
    arena.first("chdir", &[usr]);
    assert!(call_in_child(&arena, chdir, args) < 0, "/usr/usr");
}

#[test]
fn every_once_is_witnessed() {
    let made: BTreeSet<&str> = MADE.iter().copied().collect();
    let once: BTreeSet<&str> =
        TABLE.iter().flatten().filter(|row| row.class == Class::Once).map(|row| row.name).collect();
    assert_eq!(made, once);
}
