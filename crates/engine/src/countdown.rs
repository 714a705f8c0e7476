//! Waits with a time-out that the engine has cut short: made again, they end when they would have ended without it.
//!
//! A wait that begins notes the time stamp counter, which costs less than a tenth of what asking for the clock does. Only where it is
//! cut short is that made into a time of the clock, at which it ends however often it is made again. What a call waits for in
//! several waits, of which each has the call's time-out, takes one time together, as in the kernel.

use crate::dispatch::Call;
use crate::sys::{now_ns, nr, tsc};
use crate::thread::Thread;
use crate::user;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use outlast_calls::{timeout, Timeout, Unit};
use outlast_image::context::Registers;

const SECOND: u64 = 1_000_000_000;
const NO_CALL: u64 = u64::MAX;

/// How far the present wait of a thread is. All zero: it does not wait.
#[repr(C)]
pub struct Countdown {
    /// The time stamp when it began; written by the gate, too.
    pub began: u64,
    /// The program's call that waits; written by the gate, too.
    pub call: u64,
    /// How many nanoseconds it lasts; 0: as long as the program's call says. The gate writes 0.
    pub length: u64,
    /// When it ends (CLOCK_MONOTONIC), if it was cut short before; else 0. The gate writes 0.
    pub deadline: u64,
    /// Not 0: the next call that the program makes is the one that was cut short.
    pub goes_on: u32,
    /// Not 0: the kernel knows how long the next wait lasts, which it was in the middle of when the engine came.
    pub goes_on_in_kernel: u32,
    /// Where it makes that: instruction and stack.
    place: [u64; 2],
    /// What is left, for calls that take the address of a time.
    left: [u64; 2],
}

/// A time stamp of this process, and the clock then.
static REFERENCE: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// Notes what time stamps mean in this process.
pub fn set_reference() {
    REFERENCE[0].store(tsc(), Relaxed);
    REFERENCE[1].store(now_ns(), Relaxed);
}

/// How long ago the time stamp was taken; 0, if that cannot be told: the counter was set back while the machine slept.
fn elapsed(stamp: u64, now: u64) -> u64 {
    let [first, first_ns] = [&REFERENCE[0], &REFERENCE[1]].map(|word| word.load(Relaxed));
    let stamp_now = tsc();
    let (Some(ticks @ 1..), Some(since)) = (stamp_now.checked_sub(first), stamp_now.checked_sub(stamp)) else {
        return 0;
    };
    let ns = now.saturating_sub(first_ns);
    (since.min(ticks) as u128 * ns as u128 / ticks as u128) as u64
}

impl Countdown {
    /// The thread waits for nothing that it has waited for so far: the next wait takes as long as it says.
    pub fn forget(&mut self) {
        (self.call, self.deadline, self.goes_on) = (NO_CALL, 0, 0);
    }

    /// The thread came to the gate with a call, which it makes with these registers.
    #[inline]
    pub fn arrive(&mut self, regs: &Registers) {
        self.call = NO_CALL;
        if self.goes_on == 0 || self.place != [regs.rip - 2, regs.rsp] {
            self.deadline = 0;
        }
        self.goes_on = 0;
    }

    /// Does the call of the thread wait, at most as long as it was told?
    fn is_of(&self, call: u64) -> bool {
        self.call == call
    }

    /// When the wait that has begun ends.
    fn end(&mut self, length: u64) -> u64 {
        if self.deadline == 0 {
            let now = now_ns();
            // Not 0, which stands for none.
            self.deadline = (now - elapsed(self.began, now).min(now)).saturating_add(length).max(1);
        }
        self.deadline
    }
}

/// By which number the call is made now.
pub fn number(t: &mut Thread, call: &Call) -> u64 {
    match core::mem::take(&mut t.countdown.goes_on_in_kernel) {
        0 => call.nr,
        _ => nr::RESTART_SYSCALL,
    }
}

/// The call as it is to be made now: one with a time-out waits for what is left of that.
pub fn begin(t: &mut Thread, call: &Call) -> Call {
    let Some((timeout, length)) = finite(call) else { return *call };
    let (number, c) = (t.call, &mut t.countdown);
    if c.deadline == 0 && !c.is_of(number) {
        (c.began, c.call, c.length) = (tsc(), number, length);
        return *call;
    }
    (c.call, c.length) = (number, length);
    let left = c.end(length).saturating_sub(now_ns()).min(length);
    let mut args = call.args;
    args[timeout.arg as usize] = match timeout.unit {
        Unit::Milliseconds => left.div_ceil(1_000_000),
        Unit::Timespec => {
            c.left = [left / SECOND, left % SECOND];
            c.left.as_ptr() as u64
        }
        Unit::Timeval => {
            let left = left.div_ceil(1000);
            c.left = [left / 1_000_000, left % 1_000_000];
            c.left.as_ptr() as u64
        }
    };
    Call { nr: call.nr, args }
}

/// The call was made, as `made`: where the kernel has left what was left of the time, the program finds it.
pub fn end(t: &Thread, call: &Call, made: &Call) {
    if call.args != made.args {
        if let Some(Timeout { arg, is_written_back: true, .. }) = timeout(call.nr, &call.args) {
            // As in the kernel it does not matter if that cannot be written to.
            user::write(call.args[arg as usize], &t.countdown.left);
        }
    }
}

/// The thread makes the call that was cut short once more, with `regs`.
pub fn cut_short(t: &mut Thread, regs: &Registers) {
    if !t.countdown.is_of(t.call) {
        return;
    }
    let length = match t.countdown.length {
        0 => finite(&Call::made(t.call, regs)).map_or(0, |(_, length)| length),
        length => length,
    };
    if length != 0 {
        t.countdown.end(length);
        (t.countdown.goes_on, t.countdown.place) = (1, [regs.rip, regs.rsp]);
    }
}

/// The time-out of a call that does not wait for ever, and in nanoseconds; `None` also if the kernel will refuse it, or if it waits not
/// at all.
fn finite(call: &Call) -> Option<(Timeout, u64)> {
    let timeout = timeout(call.nr, &call.args)?;
    let value = call.args[timeout.arg as usize];
    let time = |most| {
        let [s, part] = if value == 0 { None } else { user::read::<[u64; 2]>(value) }?;
        (s <= i64::MAX as u64 && part < most).then(|| s.saturating_mul(SECOND).saturating_add(part * (SECOND / most)))
    };
    let length = match timeout.unit {
        Unit::Milliseconds => u64::try_from(value as i32).ok()? * 1_000_000,
        Unit::Timespec => time(SECOND)?,
        Unit::Timeval => time(1_000_000)?,
    };
    (length != 0).then_some((timeout, length))
}
