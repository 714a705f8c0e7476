//! Children of a large program (`--tree`): they begin with a store that does not have their memory yet, and that is not noticed whenever one
//! of them is killed, or its parent.

mod support;

use outlast_image::control::Control;
use std::collections::BTreeMap;
use std::mem::offset_of;
use std::path::{Path, PathBuf};
use std::process::Child;
use support::tree::{any, assert_same, kill, native, outlasts, pid_at, sessions, start, youngest, Harassment};
use support::{finish, said, Home};

/// Each child finds what its parent has, writes to memory of every kind, and makes a child of its own now and then.
const CHILDREN: &str = "import ctypes, mmap, os, zlib
PAGES = 6000
libc = ctypes.CDLL(None)
heap = bytearray(PAGES * 4096)
for at in range(0, len(heap), 4096):
    heap[at:at + 8] = (at * 2654435761 % 2**63).to_bytes(8, 'little')
wiped, locked, hidden, file = (mmap.mmap(-1, 65536, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) for _ in range(4))
for area, byte in (wiped, b'w'), (locked, b'l'), (hidden, b'h'):
    area[:] = byte * 65536
wiped.madvise(18)
start = ctypes.addressof(ctypes.c_char.from_buffer(hidden))
def protect(how):
    if libc.mprotect(ctypes.c_void_p(start), 65536, how):
        raise OSError('mprotect')
shared = mmap.mmap(-1, 4096)
def look(who):
    protect(1)
    print(who, zlib.crc32(heap), wiped[:2], locked[:2], hidden[:2], shared[:4], flush=True)
    protect(0)
def work(who, depth):
    look(who)
    for at in range(0, len(heap), 40960):
        heap[at] = (heap[at] + who) % 256
    wiped[:2] = b'no'
    protect(3)
    hidden[:2] = who.to_bytes(2, 'little')
    look(who)
    if depth:
        bear(who * 10, depth - 1)
    look(who)
def bear(who, depth):
    pid = os.fork()
    if pid == 0:
        work(who, depth)
        os._exit(who % 50)
    got, status = os.waitpid(pid, 0)
    print(got == pid, os.waitstatus_to_exitcode(status), flush=True)
protect(0)
for n in range(1, 7):
    shared[:4] = n.to_bytes(4, 'little')
    bear(n, n % 3)
    heap[n * 4096 + 9] = n
look(0)";

/// With a kill each so many microseconds, on average, of whom `choose` chooses.
fn show_the_same(pause_us: u64, choose: fn(&mut fastrand::Rng, &[i32]) -> Option<i32>) {
    let how = Harassment { seeds: 2, kills: 20, pause_us, choose };
    outlasts(&Home::new(), &["/usr/bin/python3", "-c", CHILDREN], &how);
}

#[test]
fn large_children_have_what_their_parent_had_whoever_is_killed() {
    show_the_same(40_000, any);
}

#[test]
fn large_children_have_what_their_parent_had_however_early_they_are_killed() {
    show_the_same(15_000, youngest);
}

/// Process and anchor of a child whose store does not have its memory yet.
fn bare(session: &Path) -> Option<[i32; 2]> {
    pid_at(session, offset_of!(Control, bare))?;
    let both = [pid_at(session, offset_of!(Control, program_pid))?, pid_at(session, offset_of!(Control, anchor_pid))?];
    // Still, after the others were read.
    pid_at(session, offset_of!(Control, bare)).map(|_| both)
}

/// Has `meet` deal with every such child, so many times with each; how often it met one.
fn lie_in_wait(home: &Home, name: &str, child: &mut Child, times: u32, meet: impl Fn([i32; 2])) -> u32 {
    let mut met: BTreeMap<PathBuf, u32> = BTreeMap::new();
    while child.try_wait().unwrap().is_none() {
        for session in sessions(home, name) {
            let before = met.entry(session.clone()).or_default();
            if let (true, Some(both)) = (*before < times, bare(&session)) {
                *before += 1;
                meet(both);
            }
        }
    }
    met.values().sum()
}

#[test]
fn a_child_whose_store_does_not_have_its_memory_yet_is_recovered_from_its_anchor() {
    let (home, command) = (Home::new(), ["/usr/bin/python3", "-c", CHILDREN]);
    let (wanted, mut met) = (native(&command), 0);
    for n in 0.. {
        assert!(n < 20, "only {met} were met");
        let name = format!("it-{n}");
        let mut child = start(&home, &name, &command);
        met += lie_in_wait(&home, &name, &mut child, 2, |[program, _]| {
            kill(program);
        });
        assert_same(&finish(child), &wanted, &format!("{:#?}", home.log(&name)));
        if met >= 10 {
            return;
        }
    }
}

/// A child that ends at once, and what its parent is told of that.
const ONE: &str = "import os
heap = bytearray(b'x' * (64 << 20))
pid = os.fork()
if pid == 0:
    os._exit(3)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))";

#[test]
fn a_child_that_dies_with_the_anchor_that_has_its_memory_is_gone_and_that_is_told() {
    let home = Home::new();
    for n in 0..20 {
        let name = format!("it-{n}");
        let mut child = start(&home, &name, &["/usr/bin/python3", "-c", ONE]);
        let met = lie_in_wait(&home, &name, &mut child, 1, |both| {
            both.into_iter().for_each(|pid| {
                kill(pid);
            });
        });
        let output = finish(child);
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{}", said(&output));
        if met != 0 && shown == "-9\n" {
            assert!(home.events(&name).contains(&"killed".to_string()), "{:#?}", home.log(&name));
            return;
        }
        // Its memory was stored in time.
        assert_eq!(shown, "3\n", "met {met}: {:#?}", home.log(&name));
    }
    panic!("none was met");
}
