//! Restore: a process becomes the one in the store. Nothing of the dead is read but the store, the completions of its
//! ring, and the descriptor table that the anchor kept.

mod context;
mod descriptors;
mod disconnect;
pub mod holes;
pub mod image;
mod mapped_file;
mod memory;
mod opening;
mod pending;
mod reopen;
mod requeue;
mod rewind;
mod threads;
pub mod vdso;

pub use descriptors::rearm;

use crate::access::Access;
use crate::advice;
use crate::calls::threads::restore_process_state;
use crate::calls::{
    contexts, directory, groups, gs, notifications, own_pidfds, owners, semaphore_undo, watched_pidfds,
};
use crate::children;
use crate::control::{self, control, degrade, event, fail, phase};
use crate::dispatch;
use crate::entry;
use crate::gathered;
use crate::held;
use crate::held_files;
use crate::inputs;
use crate::interests;
use crate::lag;
use crate::native;
use crate::notifier;
use crate::operation::Operation;
use crate::own_faults;
use crate::own_files;
use crate::perturb;
use crate::program_rings;
use crate::replies;
use crate::scheduling;
use crate::shared_files;
use crate::shared_memory;
use crate::shown;
use crate::signals;
use crate::state::{engine, Engine};
use crate::sys::{err, futex_wake, now_ns, nr, syscall};
use crate::taking_part;
use crate::thread::{self, pending_bit};
use crate::tracker::Content;
use crate::unnamed;
use crate::unwritable;
use crate::ways;
use crate::world;
use context::{fill_thread, give_thread};
use core::sync::atomic::Ordering::*;
use opening::{load, map_store, open_store};
use outlast_image::context::{pending_kind, ThreadContext};
use outlast_image::control::{other_state, state, unreadable};
use outlast_image::event::{event_kind, phase as at};
use outlast_image::layout::ENGINE_FDS;
use requeue::requeue_signals;

/// Which rung of the ladder.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rung {
    InPlace = 1,
    Respawn = 2,
    Cold = 3,
}

/// Rung 1: the same process, after a fatal signal.
pub unsafe extern "C" fn in_place() -> ! {
    run(Rung::InPlace)
}

/// Rung 2: a process that the anchor cloned.
pub unsafe extern "C" fn respawned() -> ! {
    // The anchor may die before it can say so.
    let me = syscall!(nr::GETPID) as i32;
    control().new_pid.store(me, Release);
    control().program_pid.store(me, Release);
    control().born_at.store(now_ns(), Release);
    run(Rung::Respawn)
}

/// A child of the program's, in which nothing of the program has run yet.
pub unsafe extern "C" fn born() -> ! {
    control().program_pid.store(syscall!(nr::GETPID) as i32, Release);
    run(Rung::Respawn)
}

/// Rung 3: a fresh image of the program's file.
pub unsafe fn cold() -> ! {
    run(Rung::Cold)
}

unsafe fn run(rung: Rung) -> ! {
    let begun = now_ns();
    phase(at::RESTORE);
    signals::block_all();
    let (c, e) = (control(), engine());
    c.t_begin.store(begun, Release);
    e.load_args();
    if rung == Rung::Cold && !crate::call_filters::take_over() {
        fail!(0);
    }
    held::reset();
    crate::entry::forget_file_limit();
    world::reset();
    gs::choose_way();
    if perturb::delays() {
        // A call that went straight through the gate would not be delayed. It stays so when there are no delays any more.
        dispatch::slow_down_all();
    }
    let t = thread::install();
    shown::show();
    t.pending.store(0, Release);
    (t.native, t.has_lock, t.pins) = (0, false, false);
    if t.rseq[0] != 0 {
        // The kernel writes there whenever the thread is rescheduled; soon nothing will be mapped there. A clone of an
        // anchor that was renewed has inherited it.
        syscall!(nr::RSEQ, t.rseq[0], t.rseq[1], 1, t.rseq[2]);
    }
    let access = Access::take(e.fds.own + ENGINE_FDS);
    held_files::recover(e);
    shared_memory::reset(e);
    shared_memory::map(e);
    if rung != Rung::InPlace {
        map_store(e);
    }
    let is_born = c.anchor_pid.load(Acquire) == 0;
    open_store(e, is_born && rung == Rung::Respawn && children::is_bare());
    let seq = e.store().seq();
    let is_of_anchor = children::is_of_anchor(seq);
    if is_of_anchor && rung == Rung::Cold {
        control::unreadable(unreadable::BARE);
    }
    let sent = if rung == Rung::InPlace { c.sent.load(Acquire) } else { 0 };
    let mut context = load(e, t);
    let is_child = c.other_state.load(Acquire) == other_state::CHILD;
    let born_by = if is_child { children::adjust(e, &mut context) } else { None };
    let mut others = if is_child { threads::alone(e) } else { threads::load(e, &context) };
    let mut operation = pending::lookup(e, others.pending());
    descriptors::undo(e);
    // The kernel does not tell what is missing for the program to bring from what was never touched.
    let had_own_faults = own_faults::any();
    own_faults::load(e);
    let may_rewind = rung == Rung::InPlace && !had_own_faults && !own_faults::any();
    let rewound = may_rewind && rewind::rewind(e);
    if rung == Rung::InPlace && !rewound {
        map_store(e);
        open_store(e, false);
        context = load(e, t);
        others = threads::load(e, &context);
    }
    if rung == Rung::Cold {
        // From now on a death leaves an anchor, and who comes from that has to open the rest.
        let (unknown, none) = (other_state::UNOPENED, other_state::NONE);
        let _ = c.other_state.compare_exchange(none, unknown, AcqRel, Acquire);
    }
    let is_just_born = is_child && is_born;
    let lacks_anchor = rung == Rung::Cold || is_just_born;
    if lacks_anchor && err::is(crate::anchor::make()) {
        fail!(0);
    }
    // The descriptor table is not the one of the commit with what happened since undone.
    let other = c.other_state.load(Acquire);
    let is_foreign = rung == Rung::Cold || !matches!(other, other_state::NONE | other_state::CHILD);
    unnamed::load(e);
    if !rewound {
        own_files::load(e);
    }
    if is_foreign {
        reopen::all(e, other);
        directory::return_to(e);
    }
    if other == other_state::OLDER {
        disconnect::all(e);
    }
    if is_foreign {
        unnamed::forget_what_was_done(e, others.pending(), &mut operation);
    }
    lag::restore(e, rung == Rung::InPlace);
    inputs::load(e, is_foreign);
    if is_child {
        inputs::forget(e);
    }
    replies::load(e, is_foreign);
    interests::load(e);
    advice::load(e);
    // The call that the commit stands before is made soon.
    e.is_settled = false;
    if rung != Rung::InPlace {
        contexts::forget();
    }
    contexts::leave();
    let is_whole = is_of_anchor || is_just_born && children::has_its_memory(e);
    if is_whole {
        shared_memory::was_copied(e);
    } else if !rewound {
        memory::restore(e);
    }
    shared_memory::settle(e, seq, others.pending());
    contexts::restore(e);
    c.t_mapped.store(now_ns(), Release);
    e.hot.clear();
    if rung != Rung::InPlace {
        e.timer = 0;
        gathered::forget_timer(e);
        notifier::reset();
    }
    directory::apply_mask(e);
    e.directory_dirty = true;
    number_processes(e, &context);
    (e.drop_count, e.maps_dirty, e.kernel_dirty) = (0, !rewound, false);
    e.map_changes.forget();
    if rung == Rung::Cold {
        // What a fresh process is limited by is none of the program's doing.
        (e.kernel.limits, e.kernel_dirty) = ([0; 2], true);
        semaphore_undo::restore(e, others.pending(), &operation, other == other_state::COPY);
    }
    if !rewound {
        let content = if is_of_anchor { Content::Unsaved } else { Content::Saved };
        if let Err(why) = entry::begin(e, content) {
            degrade(why);
            fail!(0);
        }
        match is_of_anchor {
            true => unwritable::save_all(),
            false => memory::arm(e),
        }
        own_faults::restore(e, is_foreign);
    }
    shared_files::begin(e);
    if let Some(call) = &born_by {
        children::begin_with(e, t, &mut context, call);
    }
    fill_thread(t, &context);
    if ways::is_due(e) {
        t.pending.fetch_or(pending_bit::REQUEST, Release);
    }
    vdso::refuse_inside(e, t.regs.rip);
    others.each(|other| vdso::refuse_inside(e, other.regs.rip));
    if is_child {
        scheduling::born(t);
    } else {
        scheduling::restore(t);
    }
    e.tracker.pin_sequence(t);
    give_thread(t);
    signals::install_all();
    if !rewound {
        // Looks at memory that may not be there, which takes the handlers.
        crate::rewrite::recover(e);
    }
    if rung != Rung::InPlace {
        groups::restore(e);
    }
    if err::is(native::dispatch_on()) {
        fail!(0);
    }
    c.state.store(state::PROTECTED, Release);
    // What the pending call took or opened belongs to the program; to be made now it has to be able to wait.
    let pending = *others.pending();
    let done_before = pending::is_done(&pending, &operation);
    if done_before {
        pending::finish(e, others.committer(t), &pending, &mut operation, is_foreign);
    }
    notifications::restore(e, rung == Rung::InPlace);
    requeue_signals(e, sent);
    close_extra(e, rewound);
    descriptors::rearm(e);
    drop(access);
    crate::calls::timers::follow_boot(e);
    crate::calls::timers::restore(e, rung == Rung::InPlace);
    if !is_child {
        taking_part::recovered(e, others.goes_on(t), rung as u64);
    }
    if others.exist() {
        let theirs = others.committed() && !done_before;
        let rest = theirs.then(|| core::mem::replace(&mut operation, Operation::new(0)));
        others.begin(e, t, rest, is_foreign);
    }
    crate::calls::posix_timers::restore(e, t, rung == Rung::InPlace);
    if rung != Rung::InPlace {
        own_pidfds::restore(e, is_foreign);
        owners::restore(e);
        restore_process_state(e);
    }
    if is_foreign {
        unnamed::watch_all(e);
    }
    program_rings::restore(e);
    children::go_back(e.store().seq());
    if is_child {
        children::is_itself(e);
    }
    report(e, rung, begun);
    held::begin(t);
    if others.exist() {
        others.end_first(t);
    }
    signals::set_kernel_mask(t.mask);
    let own = t.pending_call;
    if !done_before && !others.committed() || pending_kind::is_anothers(own.kind) {
        threads::finish(e, t, &own, &mut operation, is_foreign);
    }
    world::unlock(t);
    world::depart(t);
    crate::gate::leave()
}

/// Tells the supervisor that the program is back.
fn report(e: &mut Engine, rung: Rung, begun: u64) {
    let c = control();
    let done = now_ns();
    c.t_resumed.store(done, Release);
    let seq = e.store().seq();
    c.last_seq.store(seq, Release);
    match rung {
        Rung::InPlace => {
            let fault = &e.fault;
            event(event_kind::ROLLBACK, rung as u32, done - fault.met_ns, fault.signal as u64, fault.address);
        }
        _ => event(event_kind::RESTORED, rung as u32, done - begun, seq, 0),
    }
    c.other_state.store(other_state::NONE, Release);
    c.restored.fetch_add(1, AcqRel);
    futex_wake(&c.restored);
}

/// Closes what the commit does not know.
fn close_extra(e: &mut Engine, rewound: bool) {
    watched_pidfds::put_back(e);
    if !rewound || descriptors::has_extra(e) {
        descriptors::close_extra(e);
    }
}

/// Where the old process id could not be had again, the program still sees the one it knows.
unsafe fn number_processes(e: &Engine, context: &ThreadContext) {
    if syscall!(nr::GETPID) as u32 != e.kernel.pid || syscall!(nr::GETTID) as u32 != context.tid {
        crate::dispatch::answer_ids();
    }
}
