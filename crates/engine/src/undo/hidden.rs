//! Hidden names: what the program removes keeps a second name in the same folder until the next commit. The program does not
//! see it in lists of the folder.

use super::names::GoneEntry;
use super::place::Place;
use crate::control::control;
use crate::state::journal;
use crate::sys::{err, futex_wake, nr, syscall};
use crate::text;
use crate::user;
use core::sync::atomic::Ordering::*;
use outlast_store::{MappedRegion, Store};

const GETRANDOM: u64 = 318;
const PREFIX: &[u8] = b".outlast-undo-";
/// Longer than the longest hidden name and a NUL.
const LEN: usize = 40;

/// Of a name that nobody else will choose.
pub fn number() -> u64 {
    let mut number = 0u64;
    // SAFETY: getrandom writes eight bytes.
    unsafe { syscall!(GETRANDOM, &raw mut number, 8, 0) };
    number
}

/// The hidden name of that number.
pub fn name(number: u64) -> [u8; LEN] {
    let mut name = [0; LEN];
    text::join(&mut name, &[PREFIX], Some(number));
    name
}

/// May there be any?
pub fn exist() -> bool {
    control().hides.load(Relaxed) != 0
}

/// Does a hidden name begin at that address of the program's memory?
pub fn is_at(at: u64) -> bool {
    let mut found = [0; PREFIX.len()];
    exist() && user::read_bytes(at, &mut found) && found == PREFIX
}

/// Gives what bears the name `place` a hidden one, too.
pub fn make(place: &Place, number: u64) -> Result<(), i64> {
    control().hides.store(1, Relaxed);
    let to = name(number);
    // SAFETY: both names end with a NUL.
    match unsafe { syscall!(nr::LINKAT, place.folder(), place.name(), place.folder(), to.as_ptr(), 0) } {
        r if err::is(r) => Err(r),
        _ => Ok(()),
    }
}

/// Removes the hidden name in the folder of `place`.
pub fn remove(place: &Place, number: u64) {
    let name = name(number);
    // SAFETY: the name ends with a NUL; nobody but the engine chooses such names.
    unsafe { syscall!(nr::UNLINKAT, place.folder(), name.as_ptr(), 0) };
}

/// What was removed before the last commit is gone for good.
pub fn remove_committed(store: &mut Store<'static, MappedRegion>) {
    store.journal_of_previous(&mut remove_one);
    control().hides.store(0, Release);
}

/// The program has ended: all that it removed is gone for good.
pub fn remove_all(store: &mut Store<'static, MappedRegion>) {
    store.journal_for_each(&mut |_, kind, bytes| remove_one(kind, bytes));
    remove_committed(store);
    futex_wake(&control().hides);
}

fn remove_one(kind: u16, bytes: &[u8]) {
    const HEAD: usize = size_of::<GoneEntry>();
    if kind != journal::GONE || bytes.len() < HEAD {
        return;
    }
    let gone: GoneEntry = bytemuck::pod_read_unaligned(&bytes[..HEAD]);
    if let Some((place, _)) = Place::decode(&bytes[HEAD..]) {
        remove(&place, gone.hidden);
    }
}
