//! Waiting for descriptors, with time-outs that end at once.

use crate::arena::{bytes, Arena};
use crate::descriptors::new_pipe;
use crate::probe::probes;
use crate::raw::must;

const IN: u64 = 1;
const EPOLL_CTL_ADD: u64 = 1;

/// Three `struct pollfd`: a pipe with nothing to read, one that can be written, one closed.
fn polled(arena: &mut Arena) -> u64 {
    let (empty, writable) = new_pipe(arena);
    let entry = |fd: u64, events: u64| fd | events << 32 | 0x7777 << 48;
    arena.put(0, &bytes(&[entry(empty, IN), entry(writable, 4), entry(0xffff_ffff, IN)]))
}

/// Sets of 512 bits, in each an empty pipe's end; one bit more than the pipe's number.
fn selected(arena: &mut Arena) -> u64 {
    let (empty, _) = new_pipe(arena);
    let mut set = [0_u64; 8];
    set[empty as usize / 64] |= 1 << (empty % 64);
    for arg in [1, 3] {
        arena.put(arg, &bytes(&set));
    }
    // The end to read can never be written.
    arena.put(2, &bytes(&set));
    empty + 1
}

/// An epoll descriptor with an event pending.
fn watched(arena: &mut Arena) -> u64 {
    let (_, writable) = new_pipe(arena);
    let epoll = must("epoll_create1", [0]);
    let event = arena.input(&[&4_u32.to_ne_bytes()[..], &7_u64.to_ne_bytes()].concat());
    must("epoll_ctl", [epoll, EPOLL_CTL_ADD, writable, event]);
    arena.finally(move || must("close", [epoll]));
    epoll
}

probes! {
    poll Success arena => vec![(0, polled(arena)), (1, 3), (2, 0)];
    ppoll Success arena => vec![(0, polled(arena)), (1, 3), (2, arena.put(2, &bytes(&[0, 1000]))), (3, 0), (4, 8)];
    // Nothing becomes ready: the sets are cleared, and no time remains.
    select Success arena => {
        let count = selected(arena);
        vec![(0, count), (4, arena.put(4, &bytes(&[0, 500])))]
    };
    pselect6 Success arena => {
        let count = selected(arena);
        vec![(0, count), (4, arena.put(4, &bytes(&[0, 500_000]))), (5, 0)]
    };
    epoll_wait Success arena => vec![(0, watched(arena)), (2, 0x7777_0000_0000 + 5), (3, 0)];
    epoll_pwait Success arena => vec![(0, watched(arena)), (2, 5), (3, 0), (4, 0), (5, 8)];
    epoll_pwait2 Support arena => {
        let epoll = watched(arena);
        vec![(0, epoll), (2, 5), (3, arena.words(&[0, 0])), (4, 0), (5, 8)]
    };
}
