//! Restore: a process becomes the one in the store. Nothing of the dead is read but the store, the completions of its
//! ring, and the descriptor table that the anchor kept.

mod descriptors;
mod disconnect;
pub mod holes;
pub mod image;
mod mapped_file;
mod memory;
mod pending;
mod reopen;
mod rewind;
mod threads;
pub mod vdso;

pub use descriptors::rearm;

use crate::access::Access;
use crate::advice;
use crate::calls::contexts;
use crate::calls::gs;
use crate::calls::threads::restore_process_state;
use crate::calls::timers::SIGALRM;
use crate::calls::{directory, groups, notifications, window};
use crate::calls::{own_pidfds, owners, semaphore_undo, watched_pidfds};
use crate::children;
use crate::control::{self, control, degrade, event, fail, phase};
use crate::delivery;
use crate::dispatch;
use crate::entry;
use crate::gathered;
use crate::held;
use crate::held_files;
use crate::in_hand;
use crate::inputs;
use crate::interests;
use crate::lag;
use crate::mutant::without;
use crate::native;
use crate::notifier;
use crate::operation::Operation;
use crate::own_faults;
use crate::perturb;
use crate::program_rings;
use crate::queued;
use crate::replies;
use crate::scheduling::{self, Scheduling};
use crate::scratch;
use crate::shared_files;
use crate::shared_memory;
use crate::shown;
use crate::signals;
use crate::state::{engine, journal, object, Engine, OwnFd};
use crate::store_room;
use crate::sys::{err, futex_wake, now_ns, nr, syscall};
use crate::taking_part;
use crate::thread::{self, pending_bit, Thread, SCHEDULING_OFFSET};
use crate::tracker::{Content, Track};
use crate::unnamed;
use crate::ways;
use crate::world;
use core::sync::atomic::Ordering::*;
use outlast_image::context::{pending_kind, ThreadContext, XSAVE_LEN, XSAVE_OFFSET};
use outlast_image::control::{other_state, state, unreadable};
use outlast_image::degradation::Degradation;
use outlast_image::event::{event_kind, phase as at};
use outlast_image::kernel::KernelState;
use outlast_image::layout::{CONTEXT_PAGE, ENGINE_FDS, PAGE, STORE_BASE, STORE_LEN};
use outlast_image::mutant::Mutant;
use outlast_store::{OpenError, Store};

const PR_SET_NAME: u64 = 15;
const SI_KERNEL: u64 = 0x80;

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
    open_store(e);
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
        open_store(e);
        context = load(e, t);
        others = threads::load(e, &context);
    }
    if rung == Rung::Cold {
        // From now on a death leaves an anchor, and who comes from that has to open the rest.
        let (unknown, none) = (other_state::UNOPENED, other_state::NONE);
        let _ = c.other_state.compare_exchange(none, unknown, AcqRel, Acquire);
    }
    let is_just_born = is_child && c.anchor_pid.load(Acquire) == 0;
    let lacks_anchor = rung == Rung::Cold || is_just_born;
    if lacks_anchor && err::is(crate::anchor::make()) {
        fail!(0);
    }
    // The descriptor table is not the one of the commit with what happened since undone.
    let other = c.other_state.load(Acquire);
    let is_foreign = rung == Rung::Cold || !matches!(other, other_state::NONE | other_state::CHILD);
    unnamed::load(e);
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
    let has_memory = rewound || is_just_born && children::has_its_memory(e);
    if !has_memory {
        memory::restore(e);
    }
    let seq = e.store().seq();
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
        if let Err(why) = entry::begin(e, Content::Saved) {
            degrade(why);
            fail!(0);
        }
        memory::arm(e);
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
    give_thread(e, t);
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

/// Maps the store, and working memory that is all zero.
unsafe fn map_store(e: &mut Engine) {
    let r = syscall!(nr::MMAP, STORE_BASE, STORE_LEN, 3, 0x01 | 0x10 | 0x4000, e.own_fd(OwnFd::Store), 0);
    if err::is(r) {
        fail!(r);
    }
    scratch::map();
}

unsafe fn open_store(e: &mut Engine) {
    store_room::reset();
    lag::before_opening(e);
    match Store::open(entry::store_region(), scratch::index()) {
        Ok((store, recovered)) => {
            e.store = Some(store);
            e.lag.power_lost |= recovered.power_lost;
            if recovered.lost > 0 {
                crate::control::degrade(Degradation::OlderState);
            }
        }
        Err(why) => control::unreadable(reason(why)),
    }
    if store_room::is_used_up() {
        fail!(err::ENOMEM);
    }
}

fn reason(why: OpenError) -> u32 {
    match why {
        OpenError::Foreign => unreadable::FOREIGN,
        OpenError::Newer { .. } => unreadable::NEWER,
        OpenError::PageSize { .. } => unreadable::PAGE_SIZE,
        OpenError::TooShort { .. } => unreadable::TOO_SHORT,
        OpenError::Scratch { .. } => unreadable::INDEX,
        OpenError::Sync(_) => unreadable::SYNC,
        _ => unreadable::DAMAGED,
    }
}

/// Reads process and thread from the store into the engine; the thread's context as committed.
unsafe fn load(e: &mut Engine, t: &mut Thread) -> ThreadContext {
    let buf = scratch::object_buffer();
    let store = e.store();
    let n = store.object(object::KERNEL, 0, buf).unwrap_or(0);
    if n != core::mem::size_of::<KernelState>() {
        control::unreadable(unreadable::DAMAGED);
    }
    let kernel: KernelState = bytemuck::pod_read_unaligned(&buf[..n]);
    e.kernel = kernel;
    ways::begin(e);
    taking_part::load(e);
    gathered::load(e);
    let n = e.store().object(object::QUEUE, 0, scratch::object_buffer()).unwrap_or(0);
    e.queue.load(&scratch::object_buffer()[..n.min(1 << 16)]);
    if threads::is_first_there(e) {
        read_context(e, t)
    } else {
        ThreadContext::default()
    }
}

/// The context of a thread as committed; its vector state goes into the control block.
unsafe fn read_context(e: &mut Engine, t: &mut Thread) -> ThreadContext {
    // The next commit saves what differs from this.
    let page = &mut *thread::context_shadow(t);
    if !e.store().read_page(CONTEXT_PAGE + t.place as u64 * PAGE, page).unwrap_or(false) {
        control::unreadable(unreadable::DAMAGED);
    }
    let context: ThreadContext = bytemuck::pod_read_unaligned(&page[..core::mem::size_of::<ThreadContext>()]);
    t.page.scheduling = bytemuck::pod_read_unaligned(&page[SCHEDULING_OFFSET..][..core::mem::size_of::<Scheduling>()]);
    let vector = (context.xsave_len as usize).min(XSAVE_LEN);
    crate::frame::reset_vector(&mut t.page.xsave.0);
    if !without(Mutant::VectorState) {
        t.page.xsave.0[..vector].copy_from_slice(&page[XSAVE_OFFSET..XSAVE_OFFSET + vector]);
        sanitize(t);
    }
    context
}

/// What XRSTOR would refuse: the store is untrusted.
fn sanitize(t: &mut Thread) {
    let x = &mut t.page.xsave.0;
    let bv = u64::from_le_bytes(x[512..520].try_into().unwrap_or([0; 8])) & t.xsave_mask;
    x[512..520].copy_from_slice(&bv.to_le_bytes());
    x[520..576].fill(0);
    let mxcsr = u32::from_le_bytes(x[24..28].try_into().unwrap_or([0; 4])) & 0xffff;
    x[24..28].copy_from_slice(&mxcsr.to_le_bytes());
}

/// Fills the control block of a thread with what the commit says of it.
unsafe fn fill_thread(t: &mut Thread, c: &ThreadContext) {
    t.regs = c.regs;
    t.regs.eflags = c.regs.eflags & 0x24_0dd5 | 0x202;
    (t.fs_base, t.gs_base) = (c.fs_base, c.gs_base);
    if c.gs_base != 0 {
        gs::begin();
    }
    t.mask = c.sigmask;
    t.altstack = c.altstack;
    t.tid = c.tid;
    t.tid_address = c.tid_address;
    t.robust_list = c.robust_list;
    t.rseq = c.rseq;
    t.comm = c.comm;
    t.call = c.pending.nr as u64;
    t.pending_call = c.pending;
    (t.interrupted, t.by_trap, t.is_unseen) = (0, 0, false);
}

/// Gives the kernel what it has to know of the running thread.
unsafe fn give_thread(e: &mut Engine, t: &Thread) {
    thread::set_fs_base(t.fs_base);
    // An anchor's clone has the anchor's name.
    syscall!(nr::PRCTL, PR_SET_NAME, t.comm.as_ptr());
    if t.tid_address != 0 {
        syscall!(nr::SET_TID_ADDRESS, t.tid_address);
    }
    if t.robust_list[0] != 0 {
        syscall!(nr::SET_ROBUST_LIST, t.robust_list[0], t.robust_list[1]);
    }
    if t.rseq[0] != 0 {
        e.tracker.pin(t.rseq[0] & !4095);
        syscall!(nr::RSEQ, t.rseq[0], t.rseq[1], 0, t.rseq[2]);
    }
}

/// Where the old process id could not be had again, the program still sees the one it knows.
unsafe fn number_processes(e: &Engine, context: &ThreadContext) {
    if syscall!(nr::GETPID) as u32 != e.kernel.pid || syscall!(nr::GETTID) as u32 != context.tid {
        crate::dispatch::answer_ids();
    }
}

/// Signals that were delivered after the commit are delivered again.
///
/// `sent`: the signals that the program, which is rolled back in place, has sent to itself and not taken.
unsafe fn requeue_signals(e: &mut Engine, sent: u64) {
    if !without(Mutant::PendingSignals) {
        let is_stale = |info: &queued::Info| sent & signals::bit(info[0] as i32) != 0 && delivery::is_own(e, info);
        e.queue.send_again(is_stale, sent != 0);
    }
    window::compare(e);
    let known = crate::state::engine();
    in_hand::recover(e);
    e.store().journal_for_each(&mut |_, kind, bytes| {
        if kind == journal::SIGNAL && bytes.len() == 128 {
            let info: [u64; 16] = bytemuck::pod_read_unaligned(bytes);
            let sig = info[0] as i32;
            // Fatal ones are not repeated: the rollback is the answer to them.
            if (1..64).contains(&sig) && !delivery::is_failure(&info) && !delivery::repeats_itself(known, &info) {
                queued::send(&info);
            }
        }
    });
    send_missed(e);
}

/// Signals that were pending when the predecessor died, or came while there was no process. Faults are answered by the
/// rollback, and what a timer or a broken pipe caused is caused again.
fn send_missed(e: &Engine) {
    const CAUSED_AGAIN: u64 = signals::FATAL | signals::bit(signals::SIGPIPE) | signals::bit(SIGALRM);
    const DEADLY: u64 = signals::bit(signals::SIGKILL) | signals::bit(signals::SIGSTOP);
    const STANDARD: u64 = 0x7fff_ffff;
    let c = control();
    let missed = c.missed.load(Acquire);
    let kept = missed & !c.timed.load(Relaxed);
    for sig in (1..64).filter(|&sig| kept & signals::bit(sig) != 0 && !e.queue.has(sig)) {
        if STANDARD & !CAUSED_AGAIN & !DEADLY & signals::bit(sig) != 0 {
            let mut info = [0; 16];
            (info[0], info[1]) = (sig as u64, SI_KERNEL);
            queued::send(&info);
        } else if STANDARD & signals::bit(sig) == 0 {
            // Nobody knows how many, and with which values.
            degrade(Degradation::SignalLost);
        }
    }
    // Who is to be stopped first has to be restored: the supervisor sees to that.
    c.missed.fetch_and(!missed | signals::bit(signals::SIGSTOP), AcqRel);
}
