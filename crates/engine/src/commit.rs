//! A commit: what changed since the last one goes into the store's ring, then one word publishes it.

use crate::advice;
use crate::calls::{contexts, processor_timers, timers};
use crate::changed_maps;
use crate::control::{control, phase};
use crate::entry;
use crate::folding;
use crate::lag;
use crate::locked;
use crate::mutant::without;
use crate::native;
use crate::operation;
use crate::own_faults;
use crate::own_files;
use crate::regions;
use crate::saving::Saving;
use crate::shared_memory;
use crate::state::{object, Engine, ONE_THREAD};
use crate::store_room;
use crate::sys::tsc;
use crate::thread::{self, Thread};
use crate::threads;
use crate::tracker::Track;
use crate::undo;
use crate::unwritable;
use crate::world;
use core::sync::atomic::Ordering::*;
use outlast_image::context::{PendingCall, Registers, ThreadContext};
use outlast_image::degradation::Degradation;
use outlast_image::event::phase as at;
use outlast_image::inject::option;
use outlast_image::kernel::interests;
use outlast_image::layout::{CONTEXT_PAGE, PAGE};
use outlast_image::mutant::Mutant;
use outlast_store::{MappedRegion, Store};

/// Largest piece of the encoded regions in one object.
const REGIONS_PIECE: usize = 32 << 10;

/// Commits with nothing pending: the thread goes on at its saved registers.
pub fn commit_at_gate(e: &mut Engine) -> u64 {
    commit(e, PendingCall::default())
}

/// Commits in the middle of a call that has had no effect yet: whoever is restored from this commit makes the call from its
/// beginning. Returns what [`commit`] does.
pub fn commit_before_call(e: &mut Engine) -> u64 {
    // SAFETY: the calling thread is at the gate.
    let t = unsafe { thread::current() };
    let (after, result) = (t.regs.rip, t.regs.rax);
    (t.regs.rip, t.regs.rax) = (after - 2, t.call);
    let seq = commit_at_gate(e);
    (t.regs.rip, t.regs.rax) = (after, result);
    seq
}

/// Commits the state of the program at the gate. `pending` is the call that the commit stands before; it is made
/// afterwards, and by whoever is restored from this commit. Returns the sequence number, 0 if protection ended.
pub fn commit(e: &mut Engine, pending: PendingCall) -> u64 {
    // SAFETY: the calling thread is at the gate.
    let t = unsafe { thread::current() };
    world::stop(t);
    let seq = commit_stopped(e, t, pending);
    world::resume();
    seq
}

/// The same, while all other threads stand still.
pub fn commit_stopped(e: &mut Engine, t: &mut Thread, pending: PendingCall) -> u64 {
    phase(at::COMMIT);
    entry::forget_file_limit();
    let Some(store) = &mut e.store else { return 0 };
    store.begin();
    for &(start, end) in &e.drops[..e.drop_count] {
        store.drop_range(start, end);
    }
    e.drop_count = 0;
    own_files::save(e);
    shared_memory::undone::close(e);
    let Some(store) = &mut e.store else { return 0 };
    let tracker = &mut e.tracker;
    let began = tsc();
    e.hot.spans.begin(began, control().last_commit_tsc.load(Relaxed));
    let compared = e.hot.commit(store, |start, end| tracker.arm(start, end));
    if world::has_several() {
        let hot = &e.hot;
        world::each_in_doubt(t, |page| {
            if !hot.contains(page) {
                tracker.written(page);
            }
        });
    }
    let Some(differing) = own_faults::compared::save(e).filter(|_| !own_faults::are_lost()) else {
        native::suspend(Degradation::OwnFaults);
        return 0;
    };
    let compared = compared + differing;
    let searched = e.tracker.may_have_changed();
    let saved = if searched { save_written(e) } else { 0 } + unwritable::save(e);
    if e.tracker.is_lost() {
        native::suspend(Degradation::NoTracker);
        return 0;
    }
    if let Some(store) = &e.store {
        e.hot.settle(store, &mut e.tracker, &e.advice);
    }
    crate::describe::changed(e);
    crate::unnamed::save(e);
    crate::unnamed::watches::save(e);
    let are_forgotten = without(Mutant::Regions) && e.store().object(object::REGIONS, 0, &mut []).is_some();
    let maps = ((e.maps_dirty || e.map_changes.any()) && !are_forgotten).then(|| changed_maps::text(e));
    if let Some(text) = maps {
        advice::follow_growth(e, || text);
    }
    let open = if maps.is_some() { own_files::open_places(e) } else { 0 };
    let Some(store) = &mut e.store else { return 0 };
    crate::rewrite::save(store);
    if let Some(text) = maps {
        let encoded = regions::encode(text, (e.kernel.start_brk, e.kernel.brk));
        if e.kernel.locking != 0 {
            locked::save(store);
        }
        e.held.look(e.fds.own, encoded, open);
        e.told_files.tell(encoded);
        own_files::follow(e);
        let Some(store) = &mut e.store else { return 0 };
        let mut key = 0;
        for piece in encoded.chunks(REGIONS_PIECE) {
            store.put(object::REGIONS, key, piece);
            key += 1;
        }
        while store.object(object::REGIONS, key, &mut []).is_some() {
            store.delete(object::REGIONS, key);
            key += 1;
        }
        e.maps_dirty = e.held.is_idle();
    }
    processor_timers::look(e, t);
    timers::note_boot(e);
    let Some(store) = &mut e.store else { return 0 };
    if e.kernel_dirty {
        store.put(object::KERNEL, 0, bytemuck::bytes_of(&e.kernel));
        e.kernel_dirty = false;
    }
    if !e.queue.is_empty() {
        let own = (t.place, t.mask);
        e.queue.settle(|place| threads::mask_of(own, place), &e.kernel.actions);
    }
    if e.queue.dirty {
        store.put(object::QUEUE, 0, e.queue.bytes());
        e.queue.dirty = false;
    }
    crate::inputs::save(e);
    crate::retrace::save(e);
    crate::replies::save(e);
    crate::gathered::save(e);
    advice::save(e);
    own_faults::save(e);
    if contexts::exist(e) {
        contexts::save(e);
    }
    crate::taking_part::save(e);
    let Some(store) = &mut e.store else { return 0 };
    if e.kernel.interests != interests::NONE {
        crate::interests::save(store);
    }
    if e.undo.shared.dirty {
        store.put(object::SHARED, 0, e.undo.shared.bytes());
        e.undo.shared.dirty = false;
    }
    if e.fds.dirty {
        store.put(object::DESCRIPTORS, 0, e.fds.bitmap());
        e.fds.dirty = false;
    }
    t.fs_base = thread::fs_base();
    save_context(store, t, context_of(t, t.regs, pending));
    e.is_settled = operation::settles(&pending);
    if world::has_several() {
        threads::save(e, t);
    } else if e.sheds_threads {
        threads::list(e, ONE_THREAD);
        e.sheds_threads = false;
    }
    let settles = lag::settles(e);
    if settles {
        e.unsynced.sync();
    }
    lag::save(e);
    let Some(store) = &mut e.store else { return 0 };
    let published = match settles {
        _ if store_room::is_used_up() => None,
        true => store.commit().ok(),
        false => store.commit_unsettled().ok(),
    };
    let Some(seq) = published else {
        store_room::suspend();
        return 0;
    };
    let fold = store.wants_fold() && !folding::is_put_off(store.ring_used());
    let c = control();
    let logged = store.last_commit_len();
    c.log_bytes.store(c.log_bytes.load(Relaxed) + logged, Relaxed);
    if logged > c.log_largest.load(Relaxed) {
        c.log_largest.store(logged, Relaxed);
    }
    c.commits.store(c.commits.load(Relaxed) + 1, Relaxed);
    c.last_seq.store(seq, Relaxed);
    let now = tsc();
    c.last_commit_tsc.store(now, Relaxed);
    c.commit_durations.count(now.saturating_sub(began));
    c.dirty_pages.store((compared + saved) as u64, Relaxed);
    e.fds.close_delayed();
    undo::committed(store);
    lag::committed(e);
    if fold {
        if lag::is_on(e) {
            lag::settle(e);
        }
        phase(at::FOLD);
        c.folds.fetch_add(1, Relaxed);
        let is_dense = e.hot.spans.are_dense();
        e.store().keep_ring(is_dense);
        if e.store().fold().is_err() || store_room::is_used_up() {
            store_room::suspend();
            return 0;
        }
    }
    shared_memory::undone::committed(e);
    if searched || fold || e.store().ring_used() > e.ring_touched {
        e.ring_touched = e.ring_touched.max(e.store().ring_used());
        e.tracker.commit_done(t.rseq[0]);
    }
    if e.args.options & option::CHECK_COMMITS != 0 && !crate::check::nothing_was_missed(e) {
        crate::native::suspend(Degradation::EngineError);
        return 0;
    }
    phase(at::COMMITTED);
    seq
}

/// Puts the thread's page, with `context` in it, into the commit.
pub fn save_context(store: &mut Store<'static, MappedRegion>, t: &mut Thread, context: ThreadContext) {
    t.page.context = context;
    let at = CONTEXT_PAGE + t.place as u64 * PAGE;
    // SAFETY: the page is the thread's own and readable, the shadow the engine's own.
    unsafe { store.diff(at, (&raw const t.page).cast(), thread::context_shadow(t)) };
}

/// What the thread is restored to: it goes on at `regs`, once `pending` is done.
pub fn context_of(t: &Thread, regs: Registers, pending: PendingCall) -> ThreadContext {
    ThreadContext {
        regs,
        fs_base: t.fs_base,
        gs_base: if without(Mutant::OwnBases) { 0 } else { t.gs_base },
        sigmask: t.mask,
        altstack: t.altstack,
        tid_address: t.tid_address,
        robust_list: t.robust_list,
        rseq: t.rseq,
        tid: t.tid,
        xsave_len: t.page.xsave.used_len() as u32,
        pending,
        comm: t.comm,
    }
}

/// Saves every page written since it was armed and arms it again, unless it becomes hot. Returns how many.
fn save_written(e: &mut Engine) -> usize {
    control().scans.fetch_add(1, Relaxed);
    let Some(store) = &mut e.store else { return 0 };
    let mut saving = Saving { store, hot: &mut e.hot, advice: &e.advice, count: 0, has_grown: false };
    e.tracker.changed(&mut saving);
    e.maps_dirty |= saving.has_grown;
    saving.count
}
