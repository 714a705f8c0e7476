//! Somebody may be copying the store, which takes longer if it is folded meanwhile.

use crate::control::control;
use crate::sys::now_ns;
use core::sync::atomic::Ordering::*;

/// Bytes of the ring from which on it is folded all the same: as much room, and as much of a recovery's time, as a copy may cost.
const MOST: u64 = 64 << 20;

/// Is a fold to be put off, with so many bytes in the ring?
#[inline]
pub fn is_put_off(ring_used: u64) -> bool {
    let until = control().no_fold_until.load(Acquire);
    until != 0 && ring_used < MOST && now_ns() < until
}
