//! What children have used: for the kernel they are the supervisor's, and the program's own sums stay zero.
//!
//! The sums are those of the places of the table whose status was taken, and of what such places told that have been used again since:
//! a program that goes back behind the taking finds less.

use super::{are_kept, table};
use crate::control::control;
use crate::dispatch::{native, Call};
use crate::sys::{err, nr};
use crate::user;
use core::sync::atomic::Ordering::*;
use outlast_image::children::{add_usage, state, Child, Usage};

const RUSAGE_CHILDREN: i32 = -1;
/// Clock ticks of `times` in a second, and microseconds in one of them.
const TICKS: u64 = 100;
const TICK_US: u64 = 10_000;

/// Is it a call that asks for that?
pub fn asks(call: &Call) -> bool {
    are_kept() && (call.nr == nr::TIMES || call.nr == nr::GETRUSAGE && call.args[0] as i32 == RUSAGE_CHILDREN)
}

pub fn ask(call: &Call) -> i64 {
    let r = native(call);
    let at = if call.nr == nr::TIMES { call.args[0] } else { call.args[1] };
    if err::is(r) || at == 0 {
        return r;
    }
    let is_told = match call.nr {
        nr::TIMES => add_ticks(at),
        _ => {
            let Some(mut usage) = user::read::<Usage>(at) else { return err::EFAULT };
            add_usage(&mut usage, &used());
            user::write(at, &usage)
        }
    };
    if is_told {
        r
    } else {
        err::EFAULT
    }
}

/// `struct tms`: own times, then those of children.
fn add_ticks(at: u64) -> bool {
    let Some(mut times) = user::read::<[u64; 4]>(at) else { return false };
    let used = used();
    for (ticks, time) in times[2..].iter_mut().zip(used.chunks_exact(2)) {
        *ticks = ticks.wrapping_add(time[0].wrapping_mul(TICKS)).wrapping_add(time[1] / TICK_US);
    }
    user::write(at, &times)
}

fn used() -> Usage {
    let mut sum = control().children_usage.each_ref().map(|word| word.load(Acquire));
    let taken = table().iter().filter(|child| child.state.load(Acquire) == state::TAKEN);
    taken.for_each(|child| add_usage(&mut sum, &child.usage()));
    sum
}

/// A place is used again.
pub fn keep(child: &Child) {
    if child.state.load(Acquire) != state::TAKEN {
        return;
    }
    let words = &control().children_usage;
    let mut sum = words.each_ref().map(|word| word.load(Acquire));
    add_usage(&mut sum, &child.usage());
    words.iter().zip(sum).for_each(|(word, value)| word.store(value, Release));
}
