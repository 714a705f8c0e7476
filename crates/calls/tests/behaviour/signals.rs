//! Signal state, in a child that has no other use for it.

use crate::arena::OWN_PID;
use crate::probe::probes;

const SIGUSR1: u64 = 10;
const MASK: u64 = 1 << (SIGUSR1 - 1);
const SIG_BLOCK: u64 = 0;

probes! {
    rt_sigaction Success _arena => vec![(0, SIGUSR1), (1, 0), (3, 8)];
    rt_sigprocmask Success _arena => vec![(0, SIG_BLOCK), (1, 0), (3, 8)];
    rt_sigpending Success _arena => vec![(1, 8)];
    rt_sigtimedwait Success arena => {
        let set = arena.words(&[MASK]);
        arena.first("rt_sigprocmask", &[SIG_BLOCK, set, 0, 8]);
        arena.first("kill", &[OWN_PID, SIGUSR1]);
        vec![(0, set), (2, arena.words(&[0, 0])), (3, 8)]
    };
    sigaltstack Success _arena => vec![(0, 0)];
}
