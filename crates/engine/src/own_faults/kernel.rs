//! Page faults of the kernel's own, which a userfaultfd of root's serves, too (one without UFFD_USER_MODE_ONLY).
//!
//! The kernel would wait in a call that the engine makes under its lock, for a thread that waits for the lock. So what the program gets
//! serves user mode alone, and before a call takes the lock, the memory that the kernel is going to use is touched in the kernel's place.

use super::{context_state, ranges, table, REGISTER_MISSING, SIGBUS};
use crate::dispatch::Call;
use crate::state::engine;
use crate::sys::nr;
use crate::user;
use core::sync::atomic::{AtomicBool, Ordering::*};
use outlast_calls::{look, written, Class, Told};

const MINCORE: u64 = 27;
const PWRITEV2: u64 = 328;
const VECTORS: u64 = 1024;

static SERVED: AtomicBool = AtomicBool::new(false);

/// Does one of the program's serve the kernel's faults?
#[inline(always)]
pub fn is_served() -> bool {
    SERVED.load(Relaxed)
}

/// The contexts have changed.
pub fn count_again() {
    // SAFETY: under the lock.
    let waits = unsafe { table() }
        .iter()
        .any(|c| c.inode != 0 && c.state & context_state::USER_MODE_ONLY == 0 && c.features & SIGBUS == 0);
    if SERVED.swap(waits, Relaxed) != waits && waits {
        crate::dispatch::slow_down_all();
    }
}

/// Touches what the call is going to use. The thread stands still before its call, and has no lock.
#[cold]
pub fn touch_arguments(call: &Call) {
    each_used(call, &mut |start, len, writes| {
        each_missing(start, len, writes, &mut |page| {
            if writes {
                user::touch(page);
            } else {
                user::is_readable(page);
            }
        });
    });
}

/// Would the kernel wait in the call after all? What it uses is not known in full, or has gone again.
#[cold]
pub fn would_wait(call: &Call) -> bool {
    let mut any = false;
    let told = each_used(call, &mut |start, len, writes| each_missing(start, len, writes, &mut |_| any = true));
    any || told == Told::Partly && points_there(call)
}

/// Is one of the arguments an address there?
pub fn points_there(call: &Call) -> bool {
    call.args.iter().any(|&arg| ranges::meets(arg, arg.saturating_add(1)))
}

/// Calls `f` with what the call uses as far as it is known: address, length, and whether the kernel writes there.
fn each_used(call: &Call, f: &mut dyn FnMut(u64, u64, bool)) -> Told {
    let is_map = outlast_calls::row(call.nr).is_some_and(|row| row.class == Class::Map);
    if is_map || call.nr == MINCORE || !ranges::has_any() {
        return Told::All;
    }
    let [_, at, len, ..] = call.args;
    match call.nr {
        nr::WRITE | nr::PWRITE64 | nr::SENDTO => f(at, len, false),
        nr::WRITEV | nr::PWRITEV | PWRITEV2 => vectors(at, len, f),
        nr::SENDMSG => {
            f(at, 56, false);
            if let Some([name, name_len, list, count, control, control_len]) = user::read::<[u64; 6]>(at) {
                f(name, name_len & 0xffff_ffff, false);
                f(control, control_len, false);
                vectors(list, count, f);
            }
        }
        _ => {}
    }
    for &arg in &call.args {
        if ranges::meets(arg, arg.saturating_add(1)) {
            f(arg, 1, false);
        }
    }
    let told =
        look(call.nr, &call.args).map(|row| written(row, &call.args, &user::Program, |at, len| f(at, len, true)));
    // What no row is about is a request of some driver's.
    told.unwrap_or(Told::Partly)
}

fn vectors(list: u64, count: u64, f: &mut dyn FnMut(u64, u64, bool)) {
    let count = count.min(VECTORS);
    f(list, count * 16, false);
    for n in 0..count {
        if let Some([at, len]) = user::read::<[u64; 2]>(list + n * 16) {
            f(at, len, false);
        }
    }
}

/// Calls `f` with the pages of a range for which the kernel would wait.
fn each_missing(start: u64, len: u64, writes: bool, f: &mut dyn FnMut(u64)) {
    if len == 0 {
        return;
    }
    let (start, end) = (start & !4095, start.saturating_add(len).saturating_add(4095) & !4095);
    ranges::each(|range| {
        let (low, high) = (start.max(range.start), end.min(range.end));
        for page in (low..high.max(low)).step_by(4096) {
            // SAFETY: only asks the kernel.
            let tracker = unsafe { &engine().tracker };
            let is_missing = range.modes & REGISTER_MISSING != 0 && !tracker.are_present(page, page + 4096);
            if is_missing || writes && range.is_compared() && tracker.any_protected(page, page + 4096) {
                f(page);
            }
        }
    });
}
