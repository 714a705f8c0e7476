//! Redo: made twice, it succeeds twice.

use super::{file, opened};
use crate::arena::{Arena, OWN_PID};
use crate::child::call_in_child;
use crate::raw::{call, must};
use outlast_calls::{Class, TABLE};
use std::collections::BTreeSet;

const AT_FDCWD: u64 = -100_i64 as u64;
const AF_INET: u64 = 2;
const SOCK_STREAM: u64 = 1;
const EPERM: i64 = -1;
const ENOSYS: i64 = -38;
const EOPNOTSUPP: i64 = -95;

fn twice(name: &str, setup: impl Fn(&mut Arena) -> Vec<u64>) {
    let mut arena = Arena::new(0);
    let args = setup(&mut arena);
    let (nr, all) = call(name, &args);
    let once = call_in_child(&arena, nr, all);
    if [ENOSYS, EOPNOTSUPP, EPERM].contains(&once) {
        println!("skipped: not supported here");
        return;
    }
    assert!(once >= 0, "{name}: error {}", -once);
    // The first effect of a call on the process itself died with the child: make it again.
    arena.first(name, &args);
    let again = call_in_child(&arena, nr, all);
    assert!(again >= 0, "{name} a second time: error {}", -again);
}

fn socket(arena: &mut Arena) -> u64 {
    let fd = must("socket", [AF_INET, SOCK_STREAM, 0]);
    arena.finally(move || must("close", [fd]));
    fd
}

/// The limits, mode or parameters that the process has already, from another call.
fn present(arena: &mut Arena, name: &str, arg: u64, len: usize) -> u64 {
    let at = arena.input(&vec![0; len]);
    must(name, [arg, at, len as u64]);
    at
}

macro_rules! redo {
    ($($test:ident $arena:ident => $args:expr;)*) => {
        const MADE: &[&str] = &[$(stringify!($test)),*];

        $(
            #[test]
            fn $test() {
                twice(stringify!($test), |$arena| $args.to_vec());
            }
        )*
    };
}

redo! {
    setxattr a => [file(a), a.text("user.outlast"), a.text("value"), 5, 0];
    lsetxattr a => [file(a), a.text("user.outlast"), a.text("value"), 5, 0];
    fsetxattr a => [opened(a), a.text("user.outlast"), a.text("value"), 5, 0];
    setxattrat a => {
        let value = a.text("value");
        [AT_FDCWD, file(a), 0, a.text("user.outlast"), a.words(&[value, 5]), 16]
    };
    chmod a => [file(a), 0o600];
    fchmod a => [opened(a), 0o600];
    fchmodat a => [AT_FDCWD, file(a), 0o600];
    fchmodat2 a => [AT_FDCWD, file(a), 0o600, 0];
    chown a => [file(a), must("getuid", []), must("getgid", [])];
    fchown a => [opened(a), must("getuid", []), must("getgid", [])];
    lchown a => [file(a), must("getuid", []), must("getgid", [])];
    fchownat a => [AT_FDCWD, file(a), must("getuid", []), must("getgid", []), 0];
    utime a => [file(a), a.words(&[5, 6])];
    utimes a => [file(a), a.words(&[5, 0, 6, 0])];
    futimesat a => [AT_FDCWD, file(a), a.words(&[5, 0, 6, 0])];
    utimensat a => [AT_FDCWD, file(a), 0, 0];
    file_setattr a => [AT_FDCWD, file(a), a.input(&[0; 24]), 24, 0];
    truncate a => [file(a), 100];
    ftruncate a => [opened(a), 100];
    fallocate a => [opened(a), 0, 0, 20_000];
    fsync a => [opened(a)];
    fdatasync a => [opened(a)];
    syncfs a => [opened(a)];
    sync_file_range a => [opened(a), 0, 100, 7];
    msync a => [a.slot(0), 4096, 4];
    flock a => [opened(a), 2];
    fcntl a => [opened(a), 4, 0o4000];
    ioctl a => [opened(a), 0x5421, a.input(&1_u32.to_ne_bytes())];
    fchdir a => {
        let path = a.text("/usr");
        let fd = must("open", [path, 0]);
        a.finally(move || must("close", [fd]));
        [fd]
    };
    umask _a => [0o027];
    setpgid _a => [0, 0];
    setpriority _a => [0, 0, 1];
    ioprio_set _a => [1, 0, 2 << 13 | 5];
    sched_setaffinity a => {
        let set = a.input(&[0; 128]);
        must("sched_getaffinity", [0, 128, set]);
        [0, 128, set]
    };
    sched_setparam a => [0, present(a, "sched_getparam", 0, 4)];
    sched_setscheduler a => [0, 0, present(a, "sched_getparam", 0, 4)];
    sched_setattr a => {
        let at = a.input(&[0; 48]);
        must("sched_getattr", [0, at, 48, 0]);
        [0, at, 0]
    };
    setrlimit a => [7, present(a, "getrlimit", 7, 16)];
    prlimit64 a => [OWN_PID, 7, present(a, "getrlimit", 7, 16), 0];
    timerfd_settime a => {
        let fd = must("timerfd_create", [1, 0]);
        a.finally(move || must("close", [fd]));
        [fd, 0, a.words(&[0, 0, 1 << 20, 0]), 0]
    };
    listen a => [socket(a), 5];
    setsockopt a => [socket(a), 1, 9, a.input(&1_u32.to_ne_bytes()), 4];
}

/// Calls that are not made twice, and why.
const EXCUSED: &[(&str, &str)] = &[("sync", "would wait for every disk of the machine")];

#[test]
fn every_redo_is_made_twice() {
    let made: BTreeSet<&str> = MADE.iter().copied().collect();
    let excused: BTreeSet<&str> = EXCUSED.iter().map(|&(name, _)| name).collect();
    for row in TABLE.iter().flatten().filter(|row| row.class == Class::Redo) {
        assert_ne!(made.contains(row.name), excused.contains(row.name), "{}: made or excused, exactly one", row.name);
    }
    for name in made {
        let row = TABLE.iter().flatten().find(|row| row.name == name).expect("a known name");
        assert_eq!(row.class, Class::Redo, "{name}");
    }
}
