//! Where the kernel is about to write for the program, pages are made writable first.
//!
//! A tracker that write-protects lets such calls fail with EFAULT; the program would never have seen that. What a call
//! writes is told by the table of system calls. Where it cannot tell, what the arguments point to is opened.

use crate::dispatch::Call;
use crate::futexes;
use crate::mutant::without;
use crate::pinned;
use crate::shared_memory;
use crate::state::engine;
use crate::sys::{err, nr};
use crate::tracker::{areas, opened, watch_opening, Track};
use crate::user;
use crate::world;
use outlast_calls::{look, written, Class, Told};
use outlast_image::layout::{ENGINE_BASE, ENGINE_END, USER_END};
use outlast_image::mutant::Mutant;

/// Bytes that are opened behind an address of which nothing is known, and words there that may be addresses, too.
const GUESS: u64 = 16 << 10;
const WORDS: u64 = 16;

/// Issues a call of the program.
#[inline(always)]
pub fn around(call: &Call, issue: impl Fn() -> i64) -> i64 {
    // SAFETY: at the gate, in no part of the engine that looks at the table of descriptors.
    let e = unsafe { engine() };
    e.fds.note_marks(call);
    if e.tracker.guards_kernel_writes() && !without(Mutant::KernelWrites) {
        return with_writable(call, &issue);
    }
    pinned::note(call);
    shared_memory::around(call, issue)
}

fn with_writable(call: &Call, issue: &dyn Fn() -> i64) -> i64 {
    if !concern(call) {
        return shared_memory::around(call, issue);
    }
    let told = allow(call);
    let r = shared_memory::around(call, issue);
    if open_more(call, r, told) {
        return issue();
    }
    take_back(call, r);
    r
}

/// Does the call write to memory of the program's, or want it to be writable?
pub fn concern(call: &Call) -> bool {
    match call.nr {
        // Where several processes may have it, the kernel looks for the page, and takes none that nobody can write to.
        n if futexes::NUMBERS.contains(&n) => !futexes::is_private(call) || futexes::is_written(call),
        _ => look(call.nr, &call.args).is_none_or(|row| !row.outs().is_empty()),
    }
}

/// Opens what the call may write.
pub fn allow(call: &Call) -> Told {
    watch_opening();
    each_out(call, &mut open)
}

/// Calls `f` with start and length of what the call may write, and of what it can be where that is not known.
pub fn each_out(call: &Call, f: &mut dyn FnMut(u64, u64)) -> Told {
    if call.nr == nr::CLONE3 {
        // pidfd, child_tid and parent_tid.
        for at in [8, 16, 24] {
            if let Some(address) = user::read(call.args[0].wrapping_add(at)) {
                f(address, 4);
            }
        }
        return Told::All;
    }
    if futexes::NUMBERS.contains(&call.nr) {
        futexes::each(call, f);
        return Told::All;
    }
    let Some(row) = look(call.nr, &call.args) else { return Told::Partly };
    if row.outs().is_empty() {
        return Told::All;
    }
    let told = written(row, &call.args, &user::Program, &mut *f);
    if told == Told::Partly {
        guess(call, |_| GUESS, f);
    }
    told
}

fn open(start: u64, len: u64) {
    let end = start.saturating_add(len).min(USER_END);
    let own = start < ENGINE_END && end > ENGINE_BASE;
    if start < end && !own {
        // SAFETY: at the gate; the handler that a fault in a guarded copy calls keeps its state elsewhere.
        unsafe { engine() }.tracker.open(start, end);
    }
}

/// Calls `f` with what the arguments point to, and what the first words there point to.
fn guess(call: &Call, len: impl Fn(u64) -> u64, f: &mut dyn FnMut(u64, u64)) {
    let likely = |at: u64| areas::find(at).is_some_and(|a| a.is_tracked());
    for at in call.args.into_iter().filter(|&at| likely(at)) {
        f(at, len(at));
        for i in 0..WORDS {
            if let Some(inner) = user::read::<u64>(at + i * 8).filter(|&inner| likely(inner)) {
                f(inner, len(inner));
            }
        }
    }
}

/// The call has failed, and no more was known than `told` of what it writes: all that it could be is opened. False: it is not to be
/// made again.
pub fn open_more(call: &Call, r: i64, told: Told) -> bool {
    let again = r == err::EFAULT && told == Told::Partly && can_repeat(call);
    if again {
        guess(call, |at| areas::find(at).map_or(0, |area| area.end - at), &mut open);
    }
    again
}

/// Has a call that failed with EFAULT done nothing that it would do a second time?
fn can_repeat(call: &Call) -> bool {
    let class = |row: &outlast_calls::Row| matches!(row.class, Class::Pure | Class::Redo);
    outlast_calls::row(call.nr).is_some_and(class)
}

/// A read that got less than was asked for has not written the rest; nor has anybody, where there is one thread.
fn take_back(call: &Call, r: i64) {
    if world::has_several()
        || r < 0
        || !matches!(call.nr, nr::READ | nr::PREAD64 | nr::GETDENTS64)
        || r as u64 >= call.args[2]
    {
        return;
    }
    let unwritten = call.args[1].saturating_add(r as u64).saturating_add(4095) & !4095;
    for &(start, end) in opened().unwrap_or(&[]) {
        if unwritten.max(start) < end {
            // SAFETY: as `open`.
            unsafe { engine() }.tracker.arm(unwritten.max(start), end);
        }
    }
}
