//! Outputs in quick succession leave together (external synchrony: Nightingale et al., "Rethink the Sync", OSDI 2006, §3).
//!
//! A commit stands before every output, but who prints without pause need not wait for one each time: what it prints is
//! *gathered* in the engine's memory, and the call has its result at once. One commit then stands before all of it. Nobody outside
//! can tell that from a program that is a little slower, since what was gathered leaves, in its order,
//!
//! - before any other call that goes through the engine, of whichever thread, and before any wait;
//! - when there is too much of it, or it is too old ([`AGE`]); a timer sees to that if the program makes no call at all.
//!
//! What is gathered when a commit comes for another reason is part of it, as an object, and leaves later. Gathered is only what
//! cannot fail for want of room, or fails later as well as now: small outputs to pipes and stream sockets. Nothing is while the
//! program shares memory with others, who could see there what comes after an output before they see that.

mod fitting;
mod leaving;
mod pieces;
mod timer;

pub use leaving::{finish, knocked, release};

use crate::dispatch::{self, Call, Outcome};
use crate::native;
use crate::replies;
use crate::retrace;
use crate::state::{object, Engine};
use crate::sys::{nr, tsc};
use crate::thread::Thread;
use core::sync::atomic::{AtomicU32, Ordering::*};
use outlast_calls::Class;
use pieces::{Piece, Pieces};
use timer::Timer;

/// Bytes of one call at most.
const MOST_OF_ONE: u64 = 1024;
/// Ticks of the time stamp counter, some 20 to 30 us: what comes so soon after the output before is quick.
const QUICK: u64 = 60_000;
/// So much quicker than slow ones, and outputs are gathered; at most so much is counted.
const ENOUGH: u32 = 8;
const COUNTED: u32 = 32;
/// Ticks, some 100 us: what is gathered leaves with the next output.
const AGE: u64 = 300_000;
/// So many outputs of a restored program leave alone: should it fail again, they have left.
const ALONE: u32 = 64;

/// Not 0: something is gathered.
static ANY: AtomicU32 = AtomicU32::new(0);
/// Not 0: it was, once, in this process.
static EVER: AtomicU32 = AtomicU32::new(0);

/// See the module.
pub struct Gathered {
    kept: Pieces,
    /// Time stamps: of the oldest byte, of the last output.
    since: u64,
    last: u64,
    /// So many outputs are to leave alone.
    alone: u32,
    /// How much quicker than slow the last outputs came.
    quick: u32,
    timer: Timer,
    /// Memory is shared with nobody, as far as is known since the last change of mappings.
    is_alone: bool,
    known: fitting::Known,
}

impl Gathered {
    pub const fn new() -> Gathered {
        Gathered {
            kept: Pieces::new(),
            since: 0,
            last: 0,
            alone: 0,
            quick: 0,
            timer: Timer::new(),
            is_alone: false,
            known: fitting::Known::new(),
        }
    }

    /// An output comes: is it one of many in quick succession?
    fn came(&mut self, now: u64) -> bool {
        let is_quick = now.wrapping_sub(self.last) < QUICK;
        self.quick = if is_quick { (self.quick + 1).min(COUNTED) } else { self.quick.saturating_sub(1) };
        self.last = now;
        self.quick >= ENOUGH
    }

    /// Has it been kept back for long enough?
    fn is_old(&self) -> bool {
        !self.kept.is_empty() && self.last.wrapping_sub(self.since) >= AGE
    }
}

/// Is there anything that is to leave before a call is made?
#[inline(always)]
pub fn is_any() -> bool {
    ANY.load(Acquire) != 0
}

/// Must all calls that may wait go through the engine?
pub fn slows_waits() -> bool {
    EVER.load(Relaxed) != 0
}

/// Before a call is served: gathers it, or has what is gathered leave. `Some`: the call is not to be served any more.
#[inline]
pub fn before(e: &mut Engine, t: &mut Thread, call: &Call) -> Option<Outcome> {
    let mut is_quick = false;
    match outlast_calls::row(call.nr).map(|row| row.class) {
        Some(Class::Output) if fitting::may_fit(call) && !replies::concern(e, call) && !retrace::is_on() => {
            is_quick = e.gathered.came(tsc());
            if is_quick && !e.gathered.is_old() {
                if let Some(n) = gather(e, t, call) {
                    return Some(Outcome::Return(n));
                }
            }
        }
        Some(Class::Output | Class::Input | Class::Pure | Class::Signal) => {}
        Some(Class::Map) => e.gathered.is_alone &= !fitting::may_share(call),
        class => {
            e.gathered.is_alone &= !fitting::may_share(call);
            e.gathered.known.forget();
            if matches!(class, Some(Class::Exec | Class::Security | Class::Thread)) {
                // Neither the program's next image nor its filters of calls are to meet the timer.
                e.gathered.timer.stop();
            }
        }
    }
    if !is_any() {
        return None;
    }
    if !leaving::leave_before_call(e, t) {
        return Some(Outcome::Registers);
    }
    if is_quick {
        gather(e, t, call).map(Outcome::Return)
    } else {
        None
    }
}

/// The call is served, an output perhaps: what comes soon after its end is quick.
#[inline]
pub fn after(e: &mut Engine, call: &Call) {
    if e.gathered.quick != 0 && outlast_calls::row(call.nr).is_some_and(|row| row.class == Class::Output) {
        e.gathered.last = tsc();
    }
}

fn gather(e: &mut Engine, t: &Thread, call: &Call) -> Option<i64> {
    let now = e.gathered.last;
    if e.gathered.alone != 0 {
        e.gathered.alone -= 1;
        return None;
    }
    if t.pending.load(Acquire) != 0 || native::is_everywhere() {
        return None;
    }
    let len = call.args[2] as u32;
    let mut piece = Piece { fd: call.fd(), len, nr: call.nr as u32, ..Piece::default() };
    if call.nr == nr::SENDTO {
        piece.flags = call.args[3] as u32;
    }
    if !e.gathered.kept.goes_on(&piece) {
        piece.room = fitting::room(e, call).filter(|room| *room >= len)?;
    }
    let is_first = e.gathered.kept.is_empty();
    if is_first && !e.gathered.timer.start(now) || !e.gathered.kept.append(piece, call.args[1]) {
        return None;
    }
    if is_first {
        e.gathered.since = now;
        slow_down_waits();
    }
    Some(len as i64)
}

fn slow_down_waits() {
    if EVER.swap(1, Relaxed) == 0 {
        dispatch::slow_down_waits(true);
    }
}

/// Puts what is gathered into the commit.
pub fn save(e: &mut Engine) {
    if let Some(store) = &mut e.store {
        e.gathered.kept.save(store);
    }
}

/// Reads it back: it has not left yet, but for what the commit stands before.
pub fn load(e: &mut Engine) {
    let buf = crate::scratch::object_buffer();
    let n = e.store().object(object::GATHERED, 0, buf).unwrap_or(0);
    let timer = core::mem::replace(&mut e.gathered.timer, Timer::new());
    e.gathered = Gathered { kept: Pieces::read(&buf[..n.min(buf.len())]), alone: ALONE, timer, ..Gathered::new() };
    EVER.store(0, Relaxed);
}

/// The timers of a dead process are gone.
pub fn forget_timer(e: &mut Engine) {
    e.gathered.timer.forget();
}
