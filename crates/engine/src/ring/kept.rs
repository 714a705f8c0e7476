//! Results and progress that outlive the ring: slots of the session, each with a check of its own, since a kill may come
//! between any two of their words.

use super::completed;
use crate::mutant::without;
use crate::sys::err;
use core::ptr::{read_volatile, write_volatile};
use outlast_image::layout::{session, SESSION_BASE};
use outlast_image::mutant::Mutant;
use outlast_image::pending::{joined_id, Progress, MEMBERS, PROGRESS_MARK};

const PROGRESS: u64 = SESSION_BASE + session::PENDING;
const RESULTS: u64 = PROGRESS + 2048;
/// Results of calls that were made for other threads.
const JOINED: u64 = PROGRESS + 2560;

/// After these results an operation is done again in the same or another way, under the same identifier.
const AGAIN: [i64; 5] = [err::ECANCELED, err::EINTR, err::EAGAIN, err::EOPNOTSUPP, err::EINVAL];

/// Looks for the result of an operation of the dead predecessor; one of [`AGAIN`] means that it did not happen.
/// To be called before `set_up`. A result that was found is kept apart from the rings: this process may die, too,
/// before its next commit, and its own ring will say nothing of the operation.
pub fn predecessor_result(user_data: u64) -> Option<i64> {
    let kept = (0..2).filter_map(|i| slot(RESULTS, i)).find(|kept| kept.id == user_data);
    if let Some(kept) = kept.filter(|_| !without(Mutant::KeptResult)) {
        return Some(kept.done as i64);
    }
    let found = completed(user_data)?;
    write_slot(RESULTS, user_data, found as u64);
    Some(found)
}

/// Keeps a result apart from the ring, which other operations will go through before the next commit.
pub fn keep_result(user_data: u64, result: i64) {
    if !is_again(result) {
        write_slot(RESULTS, user_data, result as u64);
    }
}

/// The results and the progress of what commit `seq` stands before are no more.
pub fn forget(seq: u64) {
    for (slots, n) in [PROGRESS, RESULTS].into_iter().flat_map(|slots| [(slots, 0), (slots, 1)]) {
        if slot(slots, n).is_some_and(|kept| kept.id >> 16 == seq) {
            // SAFETY: a slot of the session; without its check it is none.
            unsafe { write_volatile(&raw mut (*(slots as *mut Progress).add(n)).check, 0) };
        }
    }
}

/// Is it the result of an operation that did not happen?
pub fn is_again(result: i64) -> bool {
    AGAIN.contains(&result)
}

/// Keeps the result of the `n`th call that was made for another thread.
pub fn keep_joined(seq: u64, n: usize, result: i64) {
    if !is_again(result) && n < MEMBERS {
        // SAFETY: a slot of the session.
        unsafe { write_to((JOINED as *mut Progress).add(n), joined_id(seq, n), result as u64) };
    }
}

/// The same result, if the dead predecessor got that far. To be called before `set_up`.
pub fn joined_result(seq: u64, n: usize) -> Option<i64> {
    let id = joined_id(seq, n);
    if without(Mutant::JoinedLookup) {
        return None;
    }
    if let Some(kept) = slot(JOINED, n).filter(|kept| kept.id == id) {
        return Some(kept.done as i64);
    }
    let found = completed(id)?;
    keep_joined(seq, n, found);
    Some(found)
}

/// Notes that all parts up to operation `id` transferred `done` bytes.
pub fn save_progress(id: u64, done: u64) {
    write_slot(PROGRESS, id, done);
}

/// A slot that is whole.
fn slot(slots: u64, n: usize) -> Option<Progress> {
    // SAFETY: a slot of the session; plain integers.
    let p = unsafe { read_volatile((slots as *const Progress).add(n)) };
    (p.check == p.id ^ p.done ^ PROGRESS_MARK).then_some(p)
}

fn write_slot(slots: u64, id: u64, done: u64) {
    // SAFETY: two slots in the session, of which the other stays valid meanwhile.
    unsafe { write_to((slots as *mut Progress).add((id & 1) as usize), id, done) };
}

/// `id` and `check` are written last.
unsafe fn write_to(slot: *mut Progress, id: u64, done: u64) {
    write_volatile(&raw mut (*slot).check, 0);
    write_volatile(&raw mut (*slot).done, done);
    write_volatile(&raw mut (*slot).id, id);
    write_volatile(&raw mut (*slot).check, id ^ done ^ PROGRESS_MARK);
}

/// Progress of the operation committed as `seq`: the next part and the bytes already done.
pub fn progress(seq: u64) -> (u16, u64) {
    let mut best = (0u16, 0u64);
    if without(Mutant::Progress) {
        return best;
    }
    for p in (0..2).filter_map(|i| slot(PROGRESS, i)).filter(|p| p.id >> 16 == seq) {
        let next = (p.id as u16).wrapping_add(1);
        if next > best.0 {
            best = (next, p.done);
        }
    }
    best
}
