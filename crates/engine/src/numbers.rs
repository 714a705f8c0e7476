//! Numbers of the program's process and threads, which are other ones for the kernel after a recovery without root: the
//! program goes on with those it knows, and calls that name them are made with the kernel's.

use crate::children::asking;
use crate::dispatch::Call;
use crate::mutant::without;
use crate::state::engine;
use crate::sys::{nr, syscall};
use crate::world;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use outlast_image::mutant::Mutant;

static DIFFER: AtomicBool = AtomicBool::new(false);

/// From now on the kernel's numbers are not those that the program knows.
pub fn begin_to_differ() {
    DIFFER.store(true, Relaxed);
}

/// Does the kernel know the threads by other numbers than the program does?
pub fn differ() -> bool {
    DIFFER.load(Relaxed)
}

/// The number of this process for the kernel.
pub fn own() -> u64 {
    // SAFETY: getpid has no effect.
    unsafe { syscall!(nr::GETPID) as u64 }
}

/// A number that the program has of a process, thread or group, as the kernel knows it. The caller has the engine's lock.
pub fn to_kernel(number: u64) -> u64 {
    // SAFETY: the number does not change while the lock is held.
    let known = unsafe { engine().kernel.pid };
    // Before others, since a process and its first thread have the same number.
    if number as u32 == known {
        return own();
    }
    let of_other = || asking::to_kernel(number as i32).map_or(number, |real| real as u64);
    world::find(|t| t.tid == number as u32).map_or_else(of_other, |(_, real)| real as u64)
}

/// A process or group number of the kernel's as the program knows it.
pub fn to_program(number: i64) -> i64 {
    if number > 0 && number as u64 == own() {
        // SAFETY: as above.
        return unsafe { engine().kernel.pid as i64 };
    }
    number
}

/// The call's arguments as the kernel must have them.
pub fn arguments(call: &Call) -> [u64; 6] {
    let mut args = call.args;
    if !(differ() || asking::numbers_differ()) || without(Mutant::Numbers) {
        return args;
    }
    let Some(row) = outlast_calls::row(call.nr).filter(|row| row.names_processes()) else { return args };
    let processes = row.processes(&args);
    for (i, arg) in args.iter_mut().enumerate() {
        if processes >> i & 1 != 0 && *arg as u32 != 0 {
            *arg = to_kernel(*arg);
        }
    }
    if let Some(arg) = row.clock {
        args[arg as usize] = clock_to_kernel(args[arg as usize] as i32) as u64;
    }
    args
}

/// The clock of a process or thread holds its number: `~number << 3 | kind`, and 3 is the kind of descriptors.
pub fn clock_to_kernel(clock: i32) -> i32 {
    const DESCRIPTOR: i32 = 3;
    let number = !(clock >> 3);
    if clock >= 0 || clock & 7 == DESCRIPTOR || number == 0 {
        return clock;
    }
    !(to_kernel(number as u64) as i32) << 3 | clock & 7
}
