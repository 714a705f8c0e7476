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

use crate::calls::joined;
use crate::commit;
use crate::control::control;
use crate::dispatch::{Call, Outcome};
use crate::mutant::without;
use crate::native;
use crate::operation::{is_ready, wait_ready, Operation, POLLOUT};
use crate::periodic;
use crate::state::{object, Engine};
use crate::sys::{err, nr, syscall, tsc};
use crate::thread::{pending_bit, Thread};
use crate::user;
use bytemuck::{Pod, Zeroable};
use core::sync::atomic::{AtomicU32, Ordering::*};
use outlast_calls::Class;
use outlast_image::context::{pending_kind, PendingCall};
use outlast_image::mutant::Mutant;

/// Bytes that are gathered at most, and of one call.
const BYTES: usize = 8192;
const MOST_OF_ONE: u64 = 1024;
/// Pieces: outputs in a row to the same descriptor are one.
const PIECES: usize = 32;
/// Ticks of the time stamp counter, some 20 to 30 us: what comes so soon after the output before is quick.
const QUICK: u64 = 60_000;
/// So much quicker than slow ones, and outputs are gathered; at most so much is counted.
const ENOUGH: u32 = 8;
const COUNTED: u32 = 32;
/// Ticks, some 100 us: what is gathered leaves with the next output.
const AGE: u64 = 300_000;
/// The timer's time, and ticks of the time stamp counter after which it is set anew.
const TIMER_NS: u64 = 400_000;
const TIMER_AGE: u64 = 300_000;
/// Ticks after which a knock is somebody else's.
const TIMER_KNOCKS: u64 = 4_000_000;
/// So many outputs of a restored program leave alone: should it fail again, they have left.
const ALONE: u32 = 64;

const CLOCK_MONOTONIC: u64 = 1;
const MSG_NOSIGNAL: u32 = 0x4000;

/// Not 0: something is gathered.
static ANY: AtomicU32 = AtomicU32::new(0);
/// Not 0: it was, once, in this process.
static EVER: AtomicU32 = AtomicU32::new(0);

/// Outputs in a row: `nr` is `write`, or `sendto` with `flags`.
#[repr(C)]
#[derive(Clone, Copy, Default, Pod, Zeroable)]
struct Piece {
    fd: i32,
    len: u32,
    nr: u32,
    flags: u32,
    /// Bytes that the descriptor takes for certain.
    room: u32,
}

/// See the module.
pub struct Gathered {
    pieces: [Piece; PIECES],
    count: usize,
    bytes: [u8; BYTES],
    len: usize,
    /// Time stamps: of the oldest byte, of the last output, of when the timer was set.
    since: u64,
    last: u64,
    timer_set: u64,
    /// So many outputs are to leave alone.
    alone: u32,
    /// How much quicker than slow the last outputs came.
    quick: u32,
    /// The timer, as its id plus one; 0: none yet in this process.
    timer: i32,
    /// It is not as in the store; and there it is not empty.
    dirty: bool,
    stored: bool,
    /// Memory is shared with nobody, as far as is known since the last change of mappings.
    is_alone: bool,
    known: fitting::Known,
}

impl Gathered {
    pub const fn new() -> Gathered {
        Gathered {
            pieces: [Piece { fd: 0, len: 0, nr: 0, flags: 0, room: 0 }; PIECES],
            count: 0,
            bytes: [0; BYTES],
            len: 0,
            since: 0,
            last: 0,
            timer_set: 0,
            alone: 0,
            quick: 0,
            timer: 0,
            dirty: false,
            stored: false,
            is_alone: false,
            known: fitting::Known::new(),
        }
    }

    /// The output that is made next, once `done` bytes have left, as the call that makes it.
    fn next(&self, done: u64) -> Option<Call> {
        let mut end = 0;
        self.pieces[..self.count].iter().find_map(|piece| {
            end += piece.len as u64;
            let left = end.checked_sub(done).filter(|left| *left != 0)?.min(piece.len as u64);
            let at = self.bytes.as_ptr() as u64 + end - left;
            Some(Call { nr: piece.nr as u64, args: [piece.fd as u32 as u64, at, left, piece.flags as u64, 0, 0] })
        })
    }

    /// The first `done` bytes have left.
    fn skip(&mut self, done: u64) {
        let done = (done as usize).min(self.len);
        if done == 0 {
            return;
        }
        let (mut left, mut kept) = (done, 0);
        for n in 0..self.count {
            let mut piece = self.pieces[n];
            let gone = left.min(piece.len as usize);
            left -= gone;
            piece.len -= gone as u32;
            if piece.len != 0 {
                self.pieces[kept] = piece;
                kept += 1;
            }
        }
        self.count = kept;
        self.bytes.copy_within(done..self.len, 0);
        self.len -= done;
        self.dirty = true;
        self.publish();
    }

    /// Bytes that are to leave through the descriptor.
    fn queued(&self, fd: i32) -> u32 {
        self.pieces[..self.count].iter().filter(|piece| piece.fd == fd).map(|piece| piece.len).sum()
    }

    fn publish(&self) {
        ANY.store((self.len != 0).into(), Release);
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
        self.len != 0 && self.last.wrapping_sub(self.since) >= AGE
    }

    fn append(&mut self, piece: Piece, from: u64) -> bool {
        let len = piece.len as usize;
        let Some(room) = self.bytes.get_mut(self.len..self.len + len) else { return false };
        if !user::read_bytes(from, room) {
            return false;
        }
        match self.pieces[..self.count].last_mut() {
            Some(last) if last.takes(&piece) => last.len += piece.len,
            _ if self.count == PIECES => return false,
            _ => {
                self.pieces[self.count] = piece;
                self.count += 1;
            }
        }
        self.len += len;
        self.dirty = true;
        self.publish();
        true
    }
}

impl Piece {
    /// Does it go on with the other?
    fn takes(&self, other: &Piece) -> bool {
        (self.fd, self.nr, self.flags) == (other.fd, other.nr, other.flags) && self.len + other.len <= self.room
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
        Some(Class::Output) if fitting::may_fit(call) => {
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
                stop_timer(e);
            }
        }
    }
    if !is_any() {
        return None;
    }
    if !leave_before_call(e, t) {
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
    if t.pending.load(Acquire) != 0 || native::EVERYWHERE.load(Acquire) != 0 {
        return None;
    }
    let len = call.args[2] as u32;
    let mut piece = Piece { fd: call.fd(), len, nr: call.nr as u32, ..Piece::default() };
    if call.nr == nr::SENDTO {
        piece.flags = call.args[3] as u32;
    }
    let goes_on = e.gathered.pieces[..e.gathered.count].last().is_some_and(|last| last.takes(&piece));
    if !goes_on {
        piece.room = fitting::room(e, call).filter(|room| *room >= len)?;
    }
    let is_first = e.gathered.len == 0;
    if is_first && !set_timer(e, now) || !e.gathered.append(piece, call.args[1]) {
        return None;
    }
    if is_first {
        e.gathered.since = now;
        if EVER.swap(1, Relaxed) == 0 {
            crate::dispatch::slow_down_waits(true);
        }
    }
    Some(len as i64)
}

/// In a loop that prints the timer is always set and never comes. False: there is none to be had.
fn set_timer(e: &mut Engine, now: u64) -> bool {
    let g = &mut e.gathered;
    if g.timer == 0 {
        g.timer = periodic::knock_at_all(CLOCK_MONOTONIC, TIMER_NS, 0).map_or(-1, |id| id + 1);
        g.timer_set = now;
    } else if g.timer > 0 && now.wrapping_sub(g.timer_set) >= TIMER_AGE {
        periodic::set(g.timer - 1, TIMER_NS, 0);
        g.timer_set = now;
    }
    g.timer > 0
}

/// It comes no more.
fn stop_timer(e: &mut Engine) {
    if e.gathered.timer > 0 && e.gathered.timer_set != 0 {
        periodic::set(e.gathered.timer - 1, 0, 0);
        e.gathered.timer_set = 0;
    }
}

/// Has all leave, before the call with which the thread came to the gate. False: a signal came first, and the thread stands before
/// the call.
fn leave_before_call(e: &mut Engine, t: &mut Thread) -> bool {
    let (after, result) = (t.regs.rip, t.regs.rax);
    loop {
        (t.regs.rip, t.regs.rax) = (after - 2, t.call);
        let left = leave(e);
        match left {
            Left::Nothing => break,
            Left::Full(fd) => {
                // Others that commit meanwhile find the thread before its call.
                (t.regs.rip, t.regs.rax) = (after, result);
                let w = wait_ready(t, fd, POLLOUT, -1);
                if w != err::EINTR || is_ours(t) {
                    continue;
                }
                (t.regs.rip, t.regs.rax) = (after - 2, t.call);
            }
            Left::Interrupted if is_ours(t) => continue,
            Left::Interrupted => {}
        }
        t.interrupted = 0;
        return false;
    }
    (t.regs.rip, t.regs.rax) = (after, result);
    if control().request.load(Relaxed) != 0 {
        t.pending.fetch_or(pending_bit::REQUEST, Release);
    }
    true
}

/// Was it no signal of the program's that came?
fn is_ours(t: &mut Thread) -> bool {
    const OURS: u32 = pending_bit::REQUEST | pending_bit::STOP;
    let is_ours = t.pending.load(Acquire) & !OURS == 0;
    if is_ours {
        t.pending.fetch_and(!OURS, AcqRel);
        t.interrupted = 0;
    }
    is_ours
}

/// A knock came: has all leave that can at once. The thread stands in the program's code, or behind a call. True: it was the timer.
pub fn knocked(e: &mut Engine) -> bool {
    let now = tsc();
    let is_timer = e.gathered.timer > 0 && now.wrapping_sub(e.gathered.timer_set) < TIMER_KNOCKS;
    if is_any() && !matches!(leave(e), Left::Nothing) {
        e.gathered.timer_set = 0;
        set_timer(e, now);
    }
    is_timer
}

/// What keeps the rest.
enum Left {
    Nothing,
    /// The descriptor takes no more now.
    Full(i32),
    /// A signal, or a request.
    Interrupted,
}

/// Commits before what is gathered, and makes it.
fn leave(e: &mut Engine) -> Left {
    let Some(first) = e.gathered.next(0) else { return Left::Nothing };
    let pending =
        PendingCall { kind: pending_kind::GATHERED, nr: nr::WRITE as u32, args: first.args, offset: 0, size: 0 };
    let seq = commit::commit(e, pending);
    if seq == 0 {
        release(e);
        return Left::Nothing;
    }
    make(e, &mut Operation::new(seq))
}

/// Makes what the commit stands before, or what a dead predecessor left of it.
fn make(e: &mut Engine, operation: &mut Operation) -> Left {
    let left = loop {
        let Some(call) = e.gathered.next(operation.done) else { break Left::Nothing };
        let is_resumed = operation.was_found();
        match operation.run(e, joined::entry(&call)) {
            n @ 1.. => operation.advance(n as u64),
            err::EAGAIN => break Left::Full(call.fd()),
            err::EINTR | err::ECANCELED => break Left::Interrupted,
            r => {
                let is_silent = call.nr == nr::SENDTO && call.args[3] as u32 & MSG_NOSIGNAL != 0;
                if r == err::EPIPE && is_resumed && !is_silent {
                    // The kernel signalled the predecessor, which is dead.
                    // SAFETY: a signal to this very thread.
                    unsafe { syscall!(nr::TKILL, syscall!(nr::GETTID), crate::signals::SIGPIPE) };
                }
                // The program learns of it from its next output, which is made at once.
                e.gathered.quick = 0;
                operation.advance(call.args[2]);
            }
        }
    };
    e.gathered.skip(operation.done);
    left
}

/// Somebody without the engine goes on, or nobody: all leaves with no commit before it.
pub fn release(e: &mut Engine) {
    while let Some(call) = e.gathered.next(0) {
        // SAFETY: what the program has asked for, from the engine's memory.
        let n = unsafe { syscall!(call.nr, call.args[0], call.args[1], call.args[2], call.args[3], 0, 0) };
        match n {
            1.. => e.gathered.skip(n as u64),
            err::EINTR => {}
            err::EAGAIN => while !is_ready(call.fd(), POLLOUT) {},
            _ => e.gathered.skip(call.args[2]),
        }
    }
    stop_timer(e);
}

/// Puts what is gathered into the commit.
pub fn save(e: &mut Engine) {
    let g = &mut e.gathered;
    let Some(store) = e.store.as_mut().filter(|_| g.dirty) else { return };
    if g.len != 0 && !without(Mutant::Gathered) {
        let mut head = [Piece::default(); PIECES + 1];
        head[0].len = g.count as u32;
        head[1..=g.count].copy_from_slice(&g.pieces[..g.count]);
        store.put2(object::GATHERED, 0, bytemuck::cast_slice(&head[..=g.count]), &g.bytes[..g.len]);
    } else if g.stored {
        store.delete(object::GATHERED, 0);
    }
    (g.stored, g.dirty) = (g.len != 0, false);
}

/// Reads it back: it has not left yet, but for what the commit stands before.
pub fn load(e: &mut Engine) {
    let buf = crate::scratch::object_buffer();
    let n = e.store().object(object::GATHERED, 0, buf).unwrap_or(0);
    e.gathered = Gathered { alone: ALONE, stored: n != 0, timer: e.gathered.timer, ..Gathered::new() };
    let mut rest = &buf[..n.min(buf.len())];
    let count = take_piece(&mut rest).map_or(0, |head| head.len as usize).min(PIECES);
    let mut pieces = [Piece::default(); PIECES];
    pieces[..count].iter_mut().for_each(|piece| *piece = take_piece(&mut rest).unwrap_or_default());
    // The store is untrusted.
    for piece in &pieces[..count] {
        let is_output = joined::may_join(&Call { nr: piece.nr as u64, args: [0; 6] });
        let Some(bytes) = take(&mut rest, piece.len as usize).filter(|_| is_output) else { break };
        e.gathered.append(*piece, bytes.as_ptr() as u64);
    }
    EVER.store(0, Relaxed);
    e.gathered.publish();
}

fn take<'a>(from: &mut &'a [u8], n: usize) -> Option<&'a [u8]> {
    let (taken, rest) = from.split_at_checked(n)?;
    *from = rest;
    Some(taken)
}

fn take_piece(from: &mut &[u8]) -> Option<Piece> {
    take(from, core::mem::size_of::<Piece>()).map(bytemuck::pod_read_unaligned)
}

/// The timers of a dead process are gone.
pub fn forget_timer(e: &mut Engine) {
    e.gathered.timer = 0;
}

/// Makes what is left of what the last commit stands before.
pub fn finish(e: &mut Engine, operation: &mut Operation) {
    make(e, operation);
    if is_any() {
        EVER.store(1, Relaxed);
        crate::dispatch::slow_down_waits(true);
        set_timer(e, tsc());
    }
}
