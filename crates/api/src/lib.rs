//! For programs that want to take part in their own protection. None has to: outlast protects programs that know nothing of
//! it. Where a program is not protected every function says so, and does nothing else. `outlast.h` offers the same to C,
//! and outlast.h(3) tells more of what the functions may rely on.
//!
//! ```
//! match outlast_api::commit() {
//!     Some(number) => println!("commit {number}: no death takes anything back from here on"),
//!     None => println!("not protected"),
//! }
//! ```
//!
//! Everything here may be called in a handler of a signal.
#![no_std]

mod ask;
mod degradation;
#[cfg(feature = "std")]
mod section;

pub use degradation::Degradations;
#[cfg(feature = "std")]
pub use section::{Inside, Section};

use ask::{ask, question};
use core::ffi::{c_int, c_void};
use core::num::NonZeroU64;

/// How protection stands. The counts are those since the program's start, its last execve or its last `outlast resume`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    pub commits: u64,
    pub recoveries: u64,
    /// Number of the last commit; they count on through execve and `outlast resume`.
    pub last_commit: u64,
    /// What is not preserved.
    pub degradations: Degradations,
}

/// How the program came back: the second argument of the function after a recovery.
pub mod recovery {
    use core::ffi::c_int;
    /// The same process went back to its last commit, after a fatal signal.
    pub const ROLLED_BACK: c_int = 1;
    /// A new process, with the files and connections of the one that died.
    pub const RESPAWNED: c_int = 2;
    /// Everything had died: files were opened again, connections are closed.
    pub const RESUMED: c_int = 3;
}

/// How protection stands; `None`: the program is not protected.
pub fn status() -> Option<Status> {
    let number = |what| u64::try_from(ask(what, 0, 0)).ok();
    Some(Status {
        commits: number(question::COMMITS)?,
        recoveries: number(question::RECOVERIES)?,
        last_commit: number(question::LAST)?,
        degradations: Degradations(number(question::DEGRADATIONS)?),
    })
}

/// Commits now, after the function before a commit, if there is one. The commit's number, also in a program that is
/// restored from there; `None`: the program is not protected.
pub fn commit() -> Option<NonZeroU64> {
    u64::try_from(ask(question::COMMIT, 0, 0)).ok().and_then(NonZeroU64::new)
}

/// Has `function(argument)` called before every commit that is asked for, by [`commit`] or from outside, and every periodic
/// one; not before those that precede what others can see. One function a program, the last one counts. False: the program is
/// not protected.
///
/// # Safety
/// The function is called at any instruction of any thread: it may do what a handler of a signal may. It must return: a
/// panic ends the program. `argument` must stay valid for it.
pub unsafe fn before_commit(function: Option<extern "C" fn(*mut c_void)>, argument: *mut c_void) -> bool {
    ask(question::BEFORE_COMMIT, function.map_or(0, |f| f as usize), argument as usize) == 0
}

/// Has `function(argument, how)` called after every recovery, before the thread that made the commit does anything else;
/// `how` is one of [`recovery`]. False: the program is not protected.
///
/// # Safety
/// As [`before_commit`].
pub unsafe fn after_recovery(function: Option<extern "C" fn(*mut c_void, c_int)>, argument: *mut c_void) -> bool {
    ask(question::AFTER_RECOVERY, function.map_or(0, |f| f as usize), argument as usize) == 0
}
