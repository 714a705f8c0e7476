//! Futexes and the words a thread registers.

use crate::arena::Arena;
use crate::probe::probes;

const FUTEX_WAKE: u64 = 1;
const FUTEX_WAKE_OP: u64 = 5;
const FUTEX_LOCK_PI: u64 = 6;
/// Set the second word to 5, compare with 0.
const OP_SET_5: u64 = 5 << 12;
const FUTEX2_SIZE_U32: u64 = 2;

fn word(arena: &mut Arena, value: u32) -> u64 {
    arena.put(0, &value.to_ne_bytes())
}

probes! {
    futex_wake_nobody(futex) Success[0, 4] _arena => vec![(1, FUTEX_WAKE), (2, 1)];
    futex_lock(futex) Success[4] arena => vec![(0, word(arena, 0)), (1, FUTEX_LOCK_PI), (3, 0)];
    futex_wake_op(futex) Success[0] _arena => {
        vec![(1, FUTEX_WAKE_OP), (2, 1), (3, 1), (5, OP_SET_5)]
    };
    get_robust_list Success _arena => vec![(0, 0)];
    modify_ldt Answer _arena => vec![(0, 0), (2, 160)];
    // The word has another value than the one waited for: EAGAIN.
    futex_wait Answer arena => {
        vec![(0, word(arena, 1)), (1, 2), (2, 0xffff_ffff), (3, FUTEX2_SIZE_U32), (4, 0), (5, 0)]
    };
    futex_waitv Answer arena => {
        let at = word(arena, 1);
        vec![(0, arena.words(&[2, at, FUTEX2_SIZE_U32])), (1, 1), (2, 0), (3, 0), (4, 0)]
    };
    futex_wake Support arena => vec![(0, word(arena, 1)), (1, 0xffff_ffff), (2, 1), (3, FUTEX2_SIZE_U32)];
    futex_requeue Support arena => {
        let (from, to) = (word(arena, 1), arena.put(1, &[0; 4]));
        vec![(0, arena.words(&[1, from, FUTEX2_SIZE_U32, 0, to, FUTEX2_SIZE_U32])), (1, 0), (2, 0), (3, 0)]
    };
}
