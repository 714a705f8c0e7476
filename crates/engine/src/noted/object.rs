//! Objects of System V, made once. The kernel does not say who made one, and nobody can find one without a key (IPC_PRIVATE): so it is
//! made with one permission changed that means nothing, and gets the right ones when its number is noted. A successor that finds such
//! a one, unused, has found what its predecessor made.
//!
//! Others of the same user's that are made alike under outlast, and die or live through the very same microsecond, are not told apart.

use super::note::{how, note};
use crate::dispatch::{native, Call};
use crate::mutant::without;
use crate::sys::{err, syscall};
use outlast_image::mutant::Mutant;

const SHMGET: u64 = 29;
const SHMCTL: u64 = 31;
const SEMGET: u64 = 64;
const SEMCTL: u64 = 66;
const MSGGET: u64 = 68;
const MSGCTL: u64 = 71;
const IPC_SET: u64 = 1;
const IPC_STAT: u64 = 2;
const PERMISSIONS: u64 = 0o777;
/// Others may execute it, which nobody can.
const MARK: u64 = 1;

/// `struct shmid64_ds`, `semid64_ds`, `msqid64_ds`: 48 bytes of `struct ipc64_perm` first.
type State = [u64; 16];

/// One of the three families of calls: where its arguments are, and its commands.
pub struct Family {
    get: u64,
    control: u64,
    /// Argument that holds the flags.
    flags: usize,
    /// Argument of the control call that points to the state; the command stands before it.
    state: usize,
    /// SHM_STAT_ANY and its kind (Linux 4.17), SHM_INFO and its kind.
    stat_any: u64,
    info: u64,
    /// Word of the state that is as large as the argument after the key, if there is one.
    size: Option<usize>,
    /// Words that are zero as long as nobody has used the object.
    unused: [usize; 2],
}

const FAMILIES: [Family; 3] = [
    Family {
        get: SHMGET,
        control: SHMCTL,
        flags: 2,
        state: 2,
        stat_any: 15,
        info: 14,
        size: Some(6),
        // When somebody attached it, and how many have.
        unused: [7, 11],
    },
    Family {
        get: SEMGET,
        control: SEMCTL,
        flags: 2,
        state: 3,
        stat_any: 20,
        info: 19,
        size: Some(10),
        // When somebody changed one.
        unused: [6, 6],
    },
    Family {
        get: MSGGET,
        control: MSGCTL,
        flags: 1,
        state: 2,
        stat_any: 13,
        info: 12,
        size: None,
        // When somebody sent, and who.
        unused: [6, 12],
    },
];

impl Family {
    /// The family of a call that makes objects.
    pub fn of(nr: u64) -> Option<&'static Family> {
        FAMILIES.iter().find(|family| family.get == nr)
    }

    pub fn flags(&self, call: &Call) -> u64 {
        call.args[self.flags]
    }

    fn control(&self, id: u64, command: u64, state: &mut State) -> i64 {
        let mut args = [id, 0, 0, 0];
        (args[self.state - 1], args[self.state]) = (command, state.as_mut_ptr() as u64);
        // SAFETY: the kernel reads or writes at most as many bytes as a state has.
        unsafe { syscall!(self.control, args[0], args[1], args[2], args[3]) }
    }

    /// Makes the object with its mark.
    fn make(&self, call: &Call) -> i64 {
        let mut marked = *call;
        marked.args[self.flags] ^= MARK;
        native(&marked)
    }

    /// The first object of this kind, with its number, for which `wanted` holds.
    fn first(&self, wanted: impl Fn(u64, &mut State) -> bool) -> Option<(u64, State)> {
        let mut state: State = [0; 16];
        let last = self.control(0, self.info, &mut state);
        (0..=last.max(0) as u64).find_map(|place| {
            let id = self.control(place, self.stat_any, &mut state);
            (!err::is(id) && wanted(id as u64, &mut state)).then_some((id as u64, state))
        })
    }

    /// The object that was made and is marked still.
    fn find(&self, call: &Call) -> Option<i64> {
        // Who may say what it is has made it.
        let found = self.first(|id, state| self.is_it(call, state) && self.control(id, IPC_SET, state) == 0);
        found.map(|(id, _)| id as i64)
    }

    fn is_it(&self, call: &Call, state: &State) -> bool {
        let mode = (self.flags(call) ^ MARK) & PERMISSIONS;
        let as_large = self.size.is_none_or(|word| [call.args[1], call.args[1] & 0xffff_ffff].contains(&state[word]));
        let is_unused = self.unused.iter().all(|&word| state[word] == 0);
        state[0] as u32 == call.args[0] as u32 && mode_of(state) & PERMISSIONS == mode && as_large && is_unused
    }

    /// Gives an object, whose number is noted, the permissions that it is to have.
    pub fn settle(&self, call: &Call, id: u64) {
        let mode = self.flags(call) & PERMISSIONS;
        let mut state: State = [0; 16];
        if self.control(id, IPC_STAT, &mut state) != 0 {
            // It may not be read even by its owner.
            let Some((_, found)) = self.first(|other, _| other == id) else { return };
            state = found;
        }
        if mode_of(&state) & PERMISSIONS == mode ^ MARK {
            state[2] = state[2] & 0xffff_ffff | mode << 32;
            self.control(id, IPC_SET, &mut state);
        }
    }
}

/// The sixth word of 32 bits.
fn mode_of(state: &State) -> u64 {
    state[2] >> 32
}

/// Makes the object that the call asks for. `again`: a dead predecessor may have made it.
pub fn make(id: u64, call: &Call, again: bool) -> i64 {
    let Some(family) = Family::of(call.nr) else { return err::ENOSYS };
    let found = if again && !without(Mutant::HalfMade) { family.find(call) } else { None };
    note().begin(how::PLAIN, -1);
    note().arm(id);
    note().close(found.unwrap_or_else(|| family.make(call)))
}
