//! Signals for other processes of the tree. One that is dead when the kernel is to give it a signal, and comes back, would never get it: the
//! supervisor hears of every signal and sends those again that met nobody.

use super::asking::{self, ask};
use super::{are_kept, LOOKS, PATIENCE_NS};
use crate::calls::groups;
use crate::control::control;
use crate::dispatch::Call;
use crate::state::engine;
use crate::sys::{futex_wait, futex_wake, now_ns, nr};
use core::sync::atomic::Ordering::*;
use outlast_image::control::tree_request::kind;
use outlast_image::control::SIGNALLED;

const SIGKILL: i32 = 9;
const ESRCH: i64 = -3;

/// To whom a call sends which signal: as `kill` has it, and the program's own group by its number.
fn receiver(call: &Call) -> (i32, i32) {
    let [first, second, third, ..] = call.args.map(|arg| arg as i32);
    let (to, signal) = match call.nr {
        nr::TGKILL | nr::RT_TGSIGQUEUEINFO => (first, third),
        _ => (first, second),
    };
    match to {
        // SAFETY: a look at a number.
        0 if call.nr == nr::KILL => (-(groups::own(unsafe { engine() }) as i32), signal),
        _ => (to, signal),
    }
}

/// Had a dead predecessor sent it when it died? The call stands after the program's last commit.
pub fn is_sent(call: &Call) -> bool {
    let (c, wanted) = (control(), receiver(call));
    if !are_kept() || wanted.1 == SIGKILL {
        return false;
    }
    let count = c.signals.load(Acquire);
    let is_it = |n: u32| {
        let place = &c.signalled[n as usize % SIGNALLED];
        (place.to.load(Acquire), place.signal.load(Acquire)) == wanted && place.seq.load(Acquire) == seq()
    };
    if is_it(count.wrapping_sub(1)) {
        return true;
    }
    // It died just before the kernel had sent it, or just afterwards.
    let has_got = is_it(count) && ask(kind::HAS_GOT, [0; 2]) == Some(1);
    if has_got {
        count_one(false);
    }
    has_got
}

fn seq() -> u64 {
    // SAFETY: a look at a number.
    unsafe { engine() }.store.as_ref().map_or(0, |store| store.seq())
}

/// Makes a call that sends a signal to others.
pub fn send(call: &Call, make: impl FnOnce() -> i64) -> i64 {
    if !are_kept() {
        return make();
    }
    let (to, signal) = receiver(call);
    note(to, signal);
    if signal == SIGKILL {
        // Who dies of it is not to be recovered.
        count_one(false);
    }
    let r = make();
    // It may be dead, and about to be there again.
    let met_nobody = r == ESRCH && to > 0 && ask(kind::TO_KERNEL, [to, 0]).is_some_and(|number| number > 0);
    if signal > 0 && signal != SIGKILL && (r == 0 || met_nobody) {
        count_one(met_nobody);
    }
    if met_nobody {
        0
    } else {
        r
    }
}

/// Notes what is about to be sent.
fn note(to: i32, signal: i32) {
    let c = control();
    let count = c.signals.load(Relaxed);
    for _ in 0..LOOKS {
        let heard = c.signals_heard.load(Acquire);
        if (count.wrapping_sub(heard) as usize) < SIGNALLED {
            break;
        }
        futex_wait(&c.signals_heard, heard, Some(PATIENCE_NS));
    }
    let place = &c.signalled[count as usize % SIGNALLED];
    place.seq.store(u64::MAX, Release);
    place.to.store(to, Release);
    place.signal.store(signal, Release);
    place.at.store(now_ns(), Release);
    place.seq.store(seq(), Release);
}

/// It was sent, or is one that counts before.
fn count_one(met_nobody: bool) {
    let c = control();
    let count = c.signals.load(Relaxed);
    c.signalled[count as usize % SIGNALLED].met_nobody.store(met_nobody.into(), Release);
    c.signals.store(count.wrapping_add(1), Release);
    futex_wake(&c.signals);
}

/// A signal was taken.
pub fn note_taken(signal: i32) {
    if let Some(at) = control().taken_at.get(signal as usize) {
        at.store(now_ns(), Release);
    }
}

/// The kernel's word about who sent a signal, as the program knows that.
pub fn sender(number: i32) -> i32 {
    asking::to_program(number).unwrap_or(number)
}
