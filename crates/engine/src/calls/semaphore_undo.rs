//! What the program's end is to undo of semaphores (SEM_UNDO). The kernel keeps that for all who share the list, and does it when the
//! last of them ends: program and anchor. So the death of one of them undoes nothing. If both die it does, and a resumed program
//! takes back what it had, as far as others have left it.

use super::queues;
use crate::control::degrade;
use crate::dispatch::Call;
use crate::mutant::without;
use crate::noted::queue::{Change, CHANGES, IPC_NOWAIT, SEMOP};
use crate::operation::Operation;
use crate::state::Engine;
use crate::sys::syscall;
use outlast_image::context::PendingCall;
use outlast_image::degradation::Degradation;
use outlast_image::kernel::{Undo, UNDOS};
use outlast_image::mutant::Mutant;

pub const SEM_UNDO: u16 = 0x1000;

/// The changes were made.
pub fn changed(e: &mut Engine, set: u64, changes: &[Change]) {
    for [number, change, _] in changes.iter().filter(|change| change[2] & SEM_UNDO != 0) {
        let id = set as u32;
        let is_it = |undo: &Undo| undo.sum != 0 && (undo.id, undo.number) == (id, *number);
        let known = &mut e.kernel.semaphores;
        let place = known.iter().position(is_it).or_else(|| known.iter().position(|undo| undo.sum == 0));
        match place {
            Some(place) if is_it(&known[place]) => known[place].sum = known[place].sum.wrapping_add(*change as i16),
            Some(place) => known[place] = Undo { id, number: *number, sum: *change as i16 },
            None => e.kernel.more_undos = 1,
        }
        e.kernel_dirty = true;
    }
}

/// The set is gone, or all of its semaphores (`None`) or one were set: there is nothing to be undone there any more.
pub fn forget(e: &mut Engine, set: u64, number: Option<u64>) {
    let is_it = |undo: &&mut Undo| undo.id == set as u32 && number.is_none_or(|number| undo.number == number as u16);
    for undo in e.kernel.semaphores.iter_mut().filter(is_it) {
        (*undo, e.kernel_dirty) = (Undo::NONE, true);
    }
}

/// Does again what was undone when all had died, also of what the last of them had just done. `is_copy`: they live, and what they hold
/// is not this program's.
pub fn restore(e: &mut Engine, pending: &PendingCall, operation: &Operation, is_copy: bool) {
    if is_copy {
        (e.kernel.semaphores, e.kernel.more_undos) = ([Undo::NONE; UNDOS], 0);
        return;
    }
    if without(Mutant::SemaphoreUndo) {
        return;
    }
    let committed = e.kernel.semaphores;
    let call = Call { nr: pending.nr as u64, args: pending.args };
    let mut room = [[0; 3]; CHANGES];
    changed(e, call.args[0], queues::made(&call, operation, &mut room));
    let is_lost = |undo: &&Undo| {
        let change: Change = [undo.number, undo.sum as u16, SEM_UNDO | IPC_NOWAIT as u16];
        // SAFETY: the kernel reads the change.
        undo.sum != 0 && unsafe { syscall!(SEMOP, undo.id, change.as_ptr(), 1) } != 0
    };
    let lost = e.kernel.semaphores.iter().filter(is_lost).count();
    if lost > 0 || e.kernel.more_undos != 0 {
        degrade(Degradation::KernelObject);
    }
    // What was pending is counted when it is finished.
    e.kernel.semaphores = committed;
}
