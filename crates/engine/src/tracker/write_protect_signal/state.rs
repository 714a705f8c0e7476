//! What the tracker knows beside areas and open pages.
//!
//! It lies in working memory and not in [`super::WriteProtectSignal`]: the handler changes it while the engine holds its own
//! structures.

use crate::scratch;

/// Runs noted as opened for one system call.
pub const OPENED: usize = 8;

/// All zero at first.
#[repr(C)]
pub struct State {
    pub attached: bool,
    pub collecting: bool,
    /// The tables are full: pages may be written unnoticed.
    pub lost: bool,
    pub pagemap: i32,
    /// Isolated runs opened since the last commit, and how many of them make a step.
    pub runs: u64,
    pub step: u64,
    /// The last run opened, and the pages of the next one if it follows.
    pub last: (u64, u64),
    pub stride: u64,
    /// What will be armed by one call: start, end, protection; then the area it lies in.
    pub queue: (u64, u64, u32),
    pub queue_area: (u64, u64),
    pub opened: [(u64, u64); OPENED],
    pub opened_count: usize,
}

const _: () = assert!(core::mem::size_of::<State>() <= 4096 - 64);

pub fn state() -> &'static mut State {
    // SAFETY: lies in the engine's working memory, zeroed when that was mapped, and all zero is valid; one thread, and
    // no reference is kept over a write to the program's memory, where the handler may come in.
    unsafe { &mut *((scratch::tracker().0 + 64) as *mut State) }
}
