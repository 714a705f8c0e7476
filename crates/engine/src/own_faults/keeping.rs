//! What a commit says of the program's userfaultfds: the contexts, their ranges, and which pages there are present although the store
//! has nothing of them, since they hold the kernel's zeroes.

use super::{context_state, count_again, ranges, table, zeroes_may_exist, Context, Range, CHANGED, CONTEXTS};
use super::{COUNT, PROTECTED_CHANGED, ZEROES_CHANGED};
use crate::mutant::without;
use crate::scratch;
use crate::state::{object, Engine};
use crate::tracker::Tracker;
use core::mem::size_of;
use core::sync::atomic::Ordering::*;
use outlast_image::mutant::Mutant;
use outlast_store::{MappedRegion, Store};

/// Keys of ranges and of zeroes; those of contexts begin with 0.
const RANGE: u64 = 1 << 32;
const ZEROES: u64 = 2 << 32;
/// Of runs of pages that the program has protected against writing.
const PROTECTED: u64 = 3 << 32;
/// Runs of pages in one object.
const RUNS: usize = 128;

type Runs = [[u64; 2]; RUNS];

/// Puts what changed since the last commit into the record being built.
pub fn save(e: &mut Engine) {
    if CHANGED.swap(false, Relaxed) {
        let Some(store) = &mut e.store else { return };
        // SAFETY: in a commit.
        for (n, context) in unsafe { *table() }.iter().enumerate() {
            put(store, n as u64, (context.inode != 0).then_some(bytemuck::bytes_of(context)));
        }
        let mut count = 0;
        ranges::each(|range| {
            put(store, RANGE + count, Some(bytemuck::bytes_of(&range)));
            count += 1;
        });
        delete_from(store, RANGE + count);
    }
    if ZEROES_CHANGED.swap(false, Relaxed) {
        save_runs(e, ZEROES, |tracker, range, f| tracker.zeroes(range.start, range.end, f));
    }
    if PROTECTED_CHANGED.swap(false, Relaxed) {
        save_runs(e, PROTECTED, |tracker, range, f| {
            if range.is_compared() {
                tracker.protected(range.start, range.end, f);
            }
        });
    }
}

fn save_runs(e: &mut Engine, first: u64, each: impl Fn(&Tracker, &Range, &mut dyn FnMut(u64, u64))) {
    let (Some(store), tracker) = (&mut e.store, &e.tracker) else { return };
    let (mut runs, mut n, mut key): (Runs, _, _) = ([[0; 2]; RUNS], 0, first);
    ranges::each(|range| {
        each(tracker, &range, &mut |start, end| {
            runs[n] = [start, end];
            n += 1;
            if n == RUNS {
                store.put(object::OWN_FAULTS, key, bytemuck::cast_slice(&runs));
                (n, key) = (0, key + 1);
            }
        });
    });
    if n != 0 {
        store.put(object::OWN_FAULTS, key, bytemuck::cast_slice(&runs[..n]));
        key += 1;
    }
    delete_from(store, key);
}

fn put(store: &mut Store<'static, MappedRegion>, key: u64, bytes: Option<&[u8]>) {
    match bytes {
        Some(bytes) => store.put(object::OWN_FAULTS, key, bytes),
        None if store.object(object::OWN_FAULTS, key, &mut []).is_some() => store.delete(object::OWN_FAULTS, key),
        None => {}
    }
}

fn delete_from(store: &mut Store<'static, MappedRegion>, mut key: u64) {
    while store.object(object::OWN_FAULTS, key, &mut []).is_some() {
        store.delete(object::OWN_FAULTS, key);
        key += 1;
    }
}

/// Takes contexts and ranges from the commit.
pub fn load(e: &mut Engine) {
    super::reset();
    let buf = scratch::object_buffer();
    for n in 0..CONTEXTS {
        if e.store().object(object::OWN_FAULTS, n as u64, buf) == Some(size_of::<Context>()) {
            // SAFETY: in a restore.
            (unsafe { table() })[n] = bytemuck::pod_read_unaligned(&buf[..size_of::<Context>()]);
        }
    }
    count_again();
    CHANGED.store(false, Relaxed);
    if COUNT.load(Relaxed) == 0 {
        return;
    }
    for key in RANGE.. {
        if e.store().object(object::OWN_FAULTS, key, buf) != Some(size_of::<Range>())
            || !ranges::insert(bytemuck::pod_read_unaligned(&buf[..size_of::<Range>()]))
        {
            return;
        }
    }
}

/// Calls `f` with every run of pages that the commit says are the kernel's zeroes.
pub fn each_zero_run(e: &mut Engine, f: impl FnMut(&Tracker, u64, u64)) {
    if !without(Mutant::BroughtZeroes) && each_run(e, ZEROES, f) {
        zeroes_may_exist();
    }
}

/// The same for those that the program had protected.
pub fn each_protected_run(e: &mut Engine, f: impl FnMut(&Tracker, u64, u64)) {
    if !without(Mutant::OwnProtection) {
        each_run(e, PROTECTED, f);
    }
}

fn each_run(e: &mut Engine, first: u64, mut f: impl FnMut(&Tracker, u64, u64)) -> bool {
    let mut key = first;
    let mut runs: Runs = [[0; 2]; RUNS];
    while let Some(len) = e.store().object(object::OWN_FAULTS, key, bytemuck::cast_slice_mut(&mut runs)) {
        for &[start, end] in &runs[..(len / 16).min(RUNS)] {
            f(&e.tracker, start, end);
        }
        key += 1;
    }
    key != first
}

/// Has the context been told which interface it is to have?
pub fn is_ready(context: &Context) -> bool {
    context.state & context_state::READY != 0
}
