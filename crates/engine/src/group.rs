//! Group commit (DeWitt et al., "Implementation techniques for main memory database systems", 1984): outputs of threads that
//! wait for the engine's lock are committed and made together with the output of the thread that has it.
//!
//! A thread that comes with an output *offers* it while it looks at the lock. Who commits for an output of its own takes up to
//! [`MEMBERS`] offers: their contexts go into the commit with the call pending, as [`pending_kind::JOINED`], and once it is
//! published the calls are made on the ring in one submission, each with an identifier of its own. Results are kept apart from the
//! ring at once, which tells of the last submission only. A call that did not happen, or only in part, is left to its thread.
//!
//! A thread that sleeps offers nothing: to wake it costs more than the commit that it would be spared.

use crate::call_filters;
use crate::calls::{joined, output};
use crate::commit::commit_stopped;
use crate::control::{control, phase};
use crate::dispatch::Call;
use crate::gathered;
use crate::history;
use crate::leader;
use crate::lock::{self, Look};
use crate::operation::{is_nonblocking, knows_nowait};
use crate::replies;
use crate::retrace;
use crate::ring::{self, Entry};
use crate::signals::{bit, SIGPIPE, SIG_IGN};
use crate::state::Engine;
use crate::sys::{err, futex_wait, futex_wake};
use crate::thread::{self, standing, Thread};
use crate::unnamed;
use crate::world;
use core::sync::atomic::Ordering::*;
use outlast_image::context::{pending_kind, PendingCall};
use outlast_image::event::phase as at;
use outlast_image::pending::{joined_id, MEMBERS};

/// Values of [`Thread::offer`].
mod offer {
    /// None is made.
    pub const NONE: u32 = 0;
    /// The call at the gate may be committed and made by another thread.
    pub const OPEN: u32 = 1;
    /// Another thread does so.
    pub const TAKEN: u32 = 2;
    /// The same, and this thread sleeps until it has.
    pub const AWAITED: u32 = 3;
    /// It has: where the thread stands says how it goes on.
    pub const SERVED: u32 = 4;
}

/// How often a thread looks whether its call is made before it sleeps.
const LOOKS: u32 = 100;

/// Places of the threads whose calls a commit stands before, besides that of the thread that commits.
pub struct Group {
    members: [u32; MEMBERS],
    count: usize,
}

/// What became of a member's call.
enum Made {
    /// All of it, or as much as there will be: the call's result.
    Whole(i64),
    /// Its first bytes.
    Part(u64),
    /// Nothing.
    Nothing,
}

/// How the call of a thread goes on.
pub enum Way {
    /// The thread has the lock and serves its call.
    Alone,
    /// The thread has the lock, and its output was made in part by another.
    GoOn,
    /// Another thread has made the call, and the result is in the registers.
    Made,
}

/// Offers the call of a thread that is about to stand still, if others can make it: who waits for the thread to stand still finds
/// the offer then.
#[inline]
pub fn offer(t: &Thread, call: &Call) {
    // A call that has trapped is served by its thread: its site may be rewritten.
    if t.by_trap == 0
        && joined::may_join(call)
        && !call_filters::asks(call.nr)
        && !gathered::is_any()
        && !replies::are_owed()
        && !retrace::is_on()
    {
        t.offer.0.store(offer::OPEN, Release);
    }
}

/// Takes the lock of the engine, unless another thread makes the call meanwhile.
pub fn lock_or_join(t: &mut Thread) -> Way {
    if t.offer.0.load(Relaxed) == offer::NONE {
        world::lock(t);
        return Way::Alone;
    }
    let patience = leader::patience(t);
    let seen = lock::look(patience, || t.offer.0.load(Acquire) == offer::SERVED);
    if patience != 0 {
        leader::awaited(t, matches!(seen, Look::Over));
    }
    match seen {
        Look::Taken if t.offer.0.load(Acquire) == offer::OPEN => {
            t.offer.0.store(offer::NONE, Relaxed);
            world::locked(t);
            return Way::Alone;
        }
        // Between its last look at the offer and the lock another thread has made the call and given the lock back.
        Look::Taken => lock::give(),
        Look::Nothing if t.offer.0.compare_exchange(offer::OPEN, offer::NONE, AcqRel, Relaxed).is_ok() => {
            world::lock(t);
            return Way::Alone;
        }
        _ => {
            await_served(t);
            lock::pass_on();
        }
    }
    t.offer.0.store(offer::NONE, Relaxed);
    let way = match t.standing.load(Acquire) {
        standing::AT_REST => return Way::Made,
        standing::IN_PART => Way::GoOn,
        _ => Way::Alone,
    };
    world::lock(t);
    way
}

/// Makes the rest of an output that was made in part.
pub fn go_on(e: &mut Engine, t: &mut Thread) {
    phase(at::GATE);
    let part = t.pending_call;
    t.regs.rax = output::go_on(e, t, &part) as u64;
    phase(at::PROGRAM);
}

fn await_served(t: &Thread) {
    let is_served = || t.offer.0.load(Acquire) == offer::SERVED;
    let seen = (0..LOOKS).any(|_| {
        core::hint::spin_loop();
        is_served()
    });
    if !seen && t.offer.0.compare_exchange(offer::TAKEN, offer::AWAITED, AcqRel, Acquire).is_ok() {
        while !is_served() {
            futex_wait(&t.offer.0, offer::AWAITED, None);
        }
    }
}

/// Commits before the output `pending` of the running thread, and before those of threads that offer theirs, which are made when
/// this returns: the sequence number, 0 if protection ended.
pub fn commit(e: &mut Engine, t: &mut Thread, pending: PendingCall) -> u64 {
    if !world::has_several() {
        return commit_stopped(e, t, pending);
    }
    leader::lead(t);
    world::stop(t);
    let group = if pending.kind == pending_kind::RING { gather(e, t) } else { Group::NONE };
    let seq = commit_stopped(e, t, pending);
    world::resume();
    if group.count > 0 {
        make(e, &group, seq);
    }
    seq
}

impl Group {
    const NONE: Group = Group { members: [0; MEMBERS], count: 0 };

    fn each(&self) -> impl Iterator<Item = (usize, &'static mut Thread)> + '_ {
        // SAFETY: members wait until they are served, and each is there once.
        self.members[..self.count].iter().enumerate().map(|(n, &place)| (n, unsafe { thread::at(place) }))
    }
}

/// The threads that offer an output which can be made for them. The world is stopped.
fn gather(e: &mut Engine, own: &Thread) -> Group {
    let mut group = Group::NONE;
    world::each(|place| {
        if place == own.place || group.count == MEMBERS {
            return;
        }
        // SAFETY: the thread stands still; its offer is an atomic.
        let t = unsafe { thread::at(place) };
        let stands = t.standing.load(Acquire) == standing::IN_CALL;
        if !stands || t.offer.0.load(Acquire) != offer::OPEN || !can_make(e, own, t) {
            return;
        }
        if t.offer.0.compare_exchange(offer::OPEN, offer::TAKEN, AcqRel, Relaxed).is_ok() {
            t.pending_call = PendingCall { size: group.count as u64, ..Call::at(t).pending(pending_kind::JOINED) };
            t.standing.store(standing::IN_PART, Release);
            t.is_fresh = true;
            group.members[group.count] = place;
            group.count += 1;
        }
    });
    group
}

/// Can the running thread make the call of `t`? Of a broken pipe the kernel signals who makes the call.
fn can_make(e: &mut Engine, own: &Thread, t: &Thread) -> bool {
    let fd = Call::at(t).fd();
    let action = e.kernel.actions[SIGPIPE as usize].handler;
    let is_signal_the_same = action == SIG_IGN || action < SIG_IGN && (own.mask | t.mask) & bit(SIGPIPE) == 0;
    is_signal_the_same && t.pending.load(Relaxed) == 0 && knows_nowait(e.fds.kind(fd)) && !e.fds.is_own(fd)
}

/// Makes the calls that commit `seq` stands before, and lets their threads go on.
fn make(e: &mut Engine, group: &Group, seq: u64) {
    world::add(&control().joined, group.count as u64);
    let mut entries = [Entry::default(); MEMBERS];
    let mut results = [err::ECANCELED; MEMBERS];
    if seq != 0 {
        for (n, t) in group.each() {
            entries[n] = Entry { user_data: joined_id(seq, n), ..joined::entry(&Call::at(t)) };
        }
        e.ring.run_all(&entries[..group.count], &mut results);
        (0..group.count).for_each(|n| ring::keep_joined(seq, n, results[n]));
    }
    for (n, t) in group.each() {
        let stands = match made(&Call::at(t), results[n]) {
            Made::Whole(r) => {
                history::sent(e, &Call::at(t), 0, r.max(0) as u64);
                t.regs.rax = r as u64;
                standing::AT_REST
            }
            Made::Part(n) => {
                t.pending_call = PendingCall { kind: pending_kind::PART, offset: n, size: 0, ..t.pending_call };
                standing::IN_PART
            }
            Made::Nothing => standing::IN_CALL,
        };
        t.is_fresh = true;
        t.standing.store(stands, Release);
        if t.offer.0.swap(offer::SERVED, AcqRel) == offer::AWAITED {
            futex_wake(&t.offer.0);
        }
    }
}

fn made(call: &Call, result: i64) -> Made {
    match result {
        // Its thread finds the same, and is signalled.
        err::EPIPE => Made::Nothing,
        r if ring::is_again(r) => Made::Nothing,
        r if r > 0 && joined::total(call).is_some_and(|total| (r as u64) < total) => {
            match joined::wants_no_more(call) || is_nonblocking(call.fd()) {
                true => Made::Whole(r),
                false => Made::Part(r as u64),
            }
        }
        r => Made::Whole(r),
    }
}

/// The results that a dead predecessor left of the calls that the last commit stands before.
pub struct Found([Option<i64>; MEMBERS]);

/// Looks for them, before a new ring is set up.
pub fn lookup(seq: u64) -> Found {
    Found(core::array::from_fn(|n| ring::joined_result(seq, n)))
}

/// Makes the calls of restored threads that their predecessors have not made, and says where those go on. None of them runs.
/// `cold`: descriptors are others.
pub fn settle<'t>(e: &mut Engine, found: &mut Found, threads: impl Iterator<Item = &'t mut Thread>, cold: bool) {
    let seq = e.store().seq();
    for t in threads.filter(|t| t.pending_call.kind == pending_kind::JOINED) {
        let call = Call { nr: t.pending_call.nr as u64, args: t.pending_call.args };
        let n = t.pending_call.size as usize;
        let result =
            match found.0.get_mut(n) {
                Some(found) => found.take().filter(|_| !cold || !unnamed::is_made(call.fd())).unwrap_or_else(|| {
                    match if retrace::is_on() { retrace::made(e, &call) } else { 0 } {
                        0 => again(e, seq, n, &call),
                        before => before as i64,
                    }
                }),
                None => err::ECANCELED,
            };
        let pending = core::mem::take(&mut t.pending_call);
        match made(&call, result) {
            Made::Whole(r) => t.regs.rax = r as u64,
            Made::Part(n) => t.pending_call = PendingCall { kind: pending_kind::PART, offset: n, size: 0, ..pending },
            Made::Nothing => (t.regs.rip, t.regs.rax) = (t.regs.rip - 2, call.nr),
        }
    }
}

fn again(e: &mut Engine, seq: u64, n: usize, call: &Call) -> i64 {
    if !e.ring.available() {
        return err::ECANCELED;
    }
    let mut result = [err::ECANCELED];
    e.ring.run_all(&[Entry { user_data: joined_id(seq, n), ..joined::entry(call) }], &mut result);
    ring::keep_joined(seq, n, result[0]);
    result[0]
}
