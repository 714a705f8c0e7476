//! Calls that return two descriptors in memory.

use crate::arena::Arena;
use crate::probe::probes;
use crate::raw::must;

const AF_UNIX: u64 = 1;
const SOCK_STREAM: u64 = 1;

/// A pipe, closed when the probe is over: the end to read, and the end to write.
pub fn new_pipe(arena: &mut Arena) -> (u64, u64) {
    let ends = arena.scratch(&[0; 8]) as *const [u32; 2];
    must("pipe", [ends as u64]);
    // SAFETY: the kernel has just written both into the arena's scratch memory.
    let [reader, writer] = unsafe { ends.read_volatile() }.map(u64::from);
    arena.finally(move || [reader, writer].map(|fd| must("close", [fd])));
    (reader, writer)
}

probes! {
    pipe Success _arena => vec![];
    pipe2 Success _arena => vec![(1, 0)];
    socketpair Success _arena => vec![(0, AF_UNIX), (1, SOCK_STREAM), (2, 0)];
}
