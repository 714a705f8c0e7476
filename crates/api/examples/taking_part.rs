//! A program that takes part: it has a function called before commits and after recoveries, and commits where it wants to.
//!
//! ```sh
//! outlast run -- target/debug/examples/taking_part
//! ```

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

static COMMITS: AtomicU32 = AtomicU32::new(0);
static RECOVERIES: AtomicU32 = AtomicU32::new(0);

/// May be called at any instruction: does only what a handler of a signal may.
extern "C" fn before(_: *mut c_void) {
    COMMITS.fetch_add(1, Relaxed);
}

extern "C" fn after(_: *mut c_void, _how: c_int) {
    RECOVERIES.fetch_add(1, Relaxed);
}

fn main() {
    // SAFETY: both count, and touch nothing else.
    let is_protected = unsafe {
        outlast_api::before_commit(Some(before), ptr::null_mut())
            && outlast_api::after_recovery(Some(after), ptr::null_mut())
    };
    if !is_protected {
        println!("not protected, and just as right");
    }
    let mut sum = 0_u64;
    for round in 1..=20 {
        sum = (1..=200_000).fold(sum, |sum, i| sum.rotate_left(5) ^ i);
        println!("round {round}: {sum:x}");
        outlast_api::commit();
    }
    if let Some(status) = outlast_api::status() {
        let (commits, recoveries) = (COMMITS.load(Relaxed), RECOVERIES.load(Relaxed));
        eprintln!(
            "{} commits, {commits} after a call; {} recoveries, {recoveries} seen",
            status.commits, status.recoveries
        );
        for name in status.degradations.names() {
            eprintln!("not preserved: {name}");
        }
    }
}
