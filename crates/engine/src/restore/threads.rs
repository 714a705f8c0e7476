//! The other threads of a restored process: made anew once everything that they share is back.

use super::context::{fill_thread, give_thread, read_context};
use super::pending;
use crate::calls::{thread_birth, thread_end};
use crate::control::fail;
use crate::group;
use crate::mutant::without;
use crate::operation::Operation;
use crate::scheduling;
use crate::shared_files;
use crate::state::{engine, object, Engine, ONE_THREAD};
use crate::sys::{err, futex_wait, futex_wake};
use crate::taking_part;
use crate::thread::{self, standing, Thread};
use crate::threads::is_in;
use crate::world::{self, WORDS};
use core::sync::atomic::{AtomicU32, Ordering::*};
use outlast_image::context::{pending_kind, PendingCall, ThreadContext};
use outlast_image::layout::THREADS;
use outlast_image::mutant::Mutant;

/// What the thread that made the commit has yet to do, if it is not the first.
static mut REST: Option<(PendingCall, Operation, bool)> = None;
/// Place of that thread, once it has been given the lock of the engine.
static TURN: AtomicU32 = AtomicU32::new(0);
/// How many threads have sent themselves again what they had not taken.
static SENT: AtomicU32 = AtomicU32::new(0);

/// The threads of a commit.
pub struct Others {
    /// What the dead made of calls that a thread makes for others.
    found: group::Found,
    places: [u64; WORDS],
    /// Who made the commit, and the call that it stands before.
    committer: u32,
    pending: PendingCall,
}

/// The places of the commit's threads.
pub fn places(e: &mut Engine) -> [u64; WORDS] {
    let mut places = ONE_THREAD;
    let bytes = bytemuck::cast_slice_mut(&mut places);
    match e.store().object(object::THREADS, 0, bytes) {
        Some(n) if n == bytes.len() => places,
        _ => ONE_THREAD,
    }
}

/// Does the commit have the first thread?
pub fn is_first_there(e: &mut Engine) -> bool {
    is_in(&places(e), 0)
}

/// Reads the threads' contexts into their control blocks. `first` is that of the first thread.
pub unsafe fn load(e: &mut Engine, first: &ThreadContext) -> Others {
    let found = group::lookup(e.store().seq());
    let mut others = Others { found, places: places(e), committer: 0, pending: first.pending };
    e.threads = others.places;
    if !others.exist() {
        return others;
    }
    if let Err(r) = world::map_room(true) {
        fail!(r);
    }
    for place in others.places() {
        let t = thread::prepare(place);
        let context = read_context(e, t);
        fill_thread(t, &context);
        if context.pending.kind != pending_kind::NONE && !pending_kind::is_anothers(context.pending.kind) {
            (others.committer, others.pending) = (place, context.pending);
        }
    }
    others
}

/// A child of fork's has one thread, of however many its parent had: the next commit says so.
pub fn alone(e: &mut Engine) -> Others {
    e.threads = places(e);
    e.sheds_threads = e.threads != ONE_THREAD;
    Others { found: group::lookup(e.store().seq()), places: ONE_THREAD, committer: 0, pending: PendingCall::default() }
}

impl Others {
    /// Are there any besides the first?
    pub fn exist(&self) -> bool {
        self.places != ONE_THREAD
    }

    fn places(&self) -> impl Iterator<Item = u32> + use<> {
        let places = self.places;
        (1..THREADS as u32).filter(move |&place| is_in(&places, place))
    }

    /// Calls `f` with the others.
    pub fn each(&self, mut f: impl FnMut(&Thread)) {
        // SAFETY: they are not made yet.
        self.places().for_each(|place| f(unsafe { thread::at(place) }));
    }

    /// The call that the commit stands before.
    pub fn pending(&self) -> &PendingCall {
        &self.pending
    }

    /// The thread that made the commit.
    pub fn committer<'t>(&self, first: &'t mut Thread) -> &'t mut Thread {
        match self.committer {
            0 => first,
            // SAFETY: the threads are not made yet, or stand still.
            place => unsafe { thread::at(place) },
        }
    }

    /// Is it another thread than the first that made the commit?
    pub fn committed(&self) -> bool {
        self.committer != 0
    }

    /// The thread that learns of the recovery: who made the commit, if it stands before a call of that thread, else the first.
    pub fn goes_on<'t>(&self, first: &'t mut Thread) -> &'t mut Thread {
        let place =
            if is_in(&self.places, self.committer) { self.committer } else { self.places().next().unwrap_or(0) };
        match place {
            0 => first,
            // SAFETY: it is not made yet.
            place => unsafe { thread::at(place) },
        }
    }

    /// Makes the threads. They begin when the caller, which is the first thread, gives the engine's lock back. `rest` is what
    /// is left to do of the commit's call, if that is another thread's.
    pub unsafe fn begin(&mut self, e: &mut Engine, first: &mut Thread, rest: Option<Operation>, cold: bool) {
        thread_birth::prepare_several(e, first);
        let all = [&mut *first].into_iter().chain(self.places().map(|place| thread::at(place)));
        group::settle(e, &mut self.found, all, cold);
        stand(first);
        TURN.store(0, Release);
        SENT.store(0, Release);
        for place in self.places() {
            let t = thread::at(place);
            e.tracker.pin_sequence(t);
            t.goes_first = place == self.committer && rest.is_some() && !without(Mutant::ThreadTurn);
            let r = thread_birth::make_again(t, begin);
            if err::is(r) {
                fail!(r);
            }
            t.real_tid = r as u32;
            if t.real_tid != t.tid {
                crate::dispatch::answer_ids();
            }
            stand(t);
            world::settle(place);
        }
        // What one sends another from now on comes behind that.
        let all = self.places().count() as u32;
        loop {
            match SENT.load(Acquire) {
                sent if sent == all => break,
                sent => futex_wait(&SENT, sent, None),
            };
        }
        if let Some(operation) = rest.filter(|_| !without(Mutant::ThreadTurn)) {
            // Nobody may commit before what its predecessor did is known to it.
            REST = Some((self.pending, operation, cold));
            first.has_lock = false;
            TURN.store(self.committer, Release);
            futex_wake(&TURN);
            world::lock(first);
        }
    }

    /// Had the first thread ended? Then what stands for it ends now.
    pub unsafe fn end_first(&self, first: &mut Thread) {
        if !is_in(&self.places, 0) {
            (first.rseq, first.robust_list, first.tid_address) = ([0; 3], [0; 2], 0);
            thread_end::end(first, 0);
        }
    }
}

/// Before the thread has run at all: it goes on with what is left of its call, or at its registers.
fn stand(t: &Thread) {
    let waits = pending_kind::is_anothers(t.pending_call.kind);
    let stands = if waits { standing::IN_PART } else { standing::AT_REST };
    t.standing.store(stands, Release);
}

/// The first code of a thread that is made anew: every signal blocked.
unsafe extern "C" fn begin(t: &mut Thread) -> ! {
    let e = engine();
    thread_birth::set_up(t);
    scheduling::restore(t);
    give_thread(t);
    e.queue.send_again_to(t);
    SENT.fetch_add(1, AcqRel);
    futex_wake(&SENT);
    taking_part::expect(t);
    let part = t.pending_call;
    if t.goes_first {
        t.goes_first = false;
        while TURN.load(Acquire) != t.place {
            futex_wait(&TURN, 0, None);
        }
        t.has_lock = true;
        let rest = core::ptr::replace(&raw mut REST, None);
        if let Some((call, mut operation, cold)) = rest {
            finish(e, t, &call, &mut operation, cold);
        }
    } else {
        world::lock(t);
        if pending_kind::is_anothers(part.kind) {
            finish(e, t, &part, &mut Operation::new(0), false);
        }
    }
    world::unlock(t);
    thread_birth::run(t)
}

/// Finishes the thread's call: until then the thread stands before it.
pub fn finish(e: &mut Engine, t: &mut Thread, call: &PendingCall, operation: &mut Operation, cold: bool) {
    let stands = match call.kind {
        pending_kind::NONE | pending_kind::GATHERED => standing::AT_REST,
        pending_kind::REDO | pending_kind::WAITING => {
            t.pending_call = PendingCall { kind: pending_kind::WAITING, ..*call };
            standing::IN_PART
        }
        _ => standing::IN_CALL,
    };
    t.standing.store(stands, Release);
    t.is_fresh = true;
    pending::finish(e, t, call, operation, cold);
    if t.interrupted == 0 {
        t.standing.store(standing::AT_REST, Release);
    }
    if shared_files::is_one(call) {
        shared_files::finished(e);
    }
}
