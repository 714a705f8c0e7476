//! Files of a program whose store is to survive a loss of power: what the program has changed must be on the medium before a commit
//! that knows of it.
//!
//! Contents are synced by the commit after the change, names right after they are made: what a commit stands before is the
//! one change that may or may not have reached the medium, and its witness goes into the store with the commit, since the session is
//! gone with the power.

use crate::dispatch::Call;
use crate::lag;
use crate::noted::witness;
use crate::own_descriptors::Passing;
use crate::state::{object, Engine};
use crate::sys::{err, nr, syscall};
use crate::undo;
use outlast_calls::{row, Class};
use outlast_image::descriptor::descriptor_kind as kind;
use outlast_image::inject::option;

pub const FSYNC: u64 = 74;
pub const FDATASYNC: u64 = 75;
pub const SYNC: u64 = 162;
const O_DIRECTORY_CLOEXEC: u64 = 0o200000 | 0o2000000;
const MOST: usize = 64;

/// What is not on the medium yet.
pub struct Unsynced {
    files: [i32; MOST],
    count: usize,
    /// Of what else was changed nothing is known but that it was.
    more: bool,
    /// Syncs that failed, which the program has yet to be told of: descriptor and error.
    failed: [(i32, i64); 8],
}

impl Unsynced {
    pub const fn new() -> Unsynced {
        Unsynced { files: [0; MOST], count: 0, more: false, failed: [(-1, 0); 8] }
    }

    fn add(&mut self, fd: i32) {
        if !self.files[..self.count].contains(&fd) {
            if self.count == MOST {
                self.sync_one(fd);
                return;
            }
            self.files[self.count] = fd;
            self.count += 1;
        }
    }

    /// What was open as `fd` is open as `hidden` now.
    pub fn renumber(&mut self, fd: i32, hidden: i32) {
        self.files[..self.count].iter_mut().filter(|file| **file == fd).for_each(|file| *file = hidden);
    }

    /// Is everything on the medium?
    pub fn is_empty(&self) -> bool {
        self.count == 0 && !self.more
    }

    /// Descriptors are about to be closed: what they are of cannot be synced alone any more.
    pub fn closing(&mut self, first: u32, last: u32) {
        let mut n = 0;
        while n < self.count {
            if (first..=last).contains(&(self.files[n] as u32)) {
                self.count -= 1;
                self.files[n] = self.files[self.count];
                self.more = true;
            } else {
                n += 1;
            }
        }
    }

    fn sync_one(&mut self, fd: i32) {
        // SAFETY: syncs a file.
        let r = unsafe { syscall!(FSYNC, fd) };
        if err::is(r) && r != err::EINVAL && r != err::EBADF {
            // The kernel tells each opener once: the program, too, must learn of it.
            let place = self.failed.iter().position(|failed| failed.0 == fd || failed.0 < 0).unwrap_or(0);
            self.failed[place] = (fd, r);
        }
    }

    /// Brings everything onto the medium.
    pub fn sync(&mut self) {
        for i in 0..core::mem::take(&mut self.count) {
            self.sync_one(self.files[i]);
        }
        if core::mem::take(&mut self.more) {
            // SAFETY: has no arguments.
            unsafe { syscall!(SYNC) };
        }
    }

    /// The error of a sync that the engine made, when the program makes one.
    pub fn take_failure(&mut self, call: &Call) -> Option<i64> {
        if !matches!(call.nr, FSYNC | FDATASYNC) {
            return None;
        }
        let failed = self.failed.iter_mut().find(|failed| failed.0 == call.fd() && failed.0 >= 0)?;
        Some(core::mem::replace(failed, (-1, 0)).1)
    }
}

/// Is the program's store to survive a loss of power?
pub fn is_durable(e: &Engine) -> bool {
    e.args.options & option::DURABLE != 0
}

/// Notes what the call, which was just made, has changed of files.
pub fn note(e: &mut Engine, call: &Call, result: i64) {
    if !is_durable(e) || err::is(result) {
        return;
    }
    if undo::concerns_names(call) {
        undo::each_folder(call, |folder| sync_folder(&mut e.unsynced, folder));
    }
    match undo::target(call) {
        Some(fd) if matches!(e.fds.kind(fd), kind::REGULAR | kind::BLOCK) => {
            e.unsynced.add(fd);
            lag::written(e, fd);
        }
        Some(_) => {}
        None if undo::cut(call).is_some() => match call.nr {
            nr::TRUNCATE => e.unsynced.more = true,
            _ => e.unsynced.add(result as i32),
        },
        None => e.unsynced.more |= changes_attributes(call.nr),
    }
}

/// Modes, owners, times and attributes, by whatever name.
pub fn changes_attributes(number: u64) -> bool {
    const CHMOD_TO_UTIME: core::ops::RangeInclusive<u64> = 90..=94;
    const OTHERS: [u64; 16] = [132, 188, 189, 190, 197, 198, 199, 235, 260, 261, 268, 280, 452, 463, 466, 469];
    CHMOD_TO_UTIME.contains(&number) || OTHERS.contains(&number)
}

/// Brings the names of a folder onto the medium.
fn sync_folder(unsynced: &mut Unsynced, folder: Option<i64>) {
    let Some(folder) = folder else {
        unsynced.more = true;
        return;
    };
    // SAFETY: opens a folder that is open, for reading.
    let opened = Passing::of(|| unsafe { syscall!(nr::OPENAT, folder, c".".as_ptr(), O_DIRECTORY_CLOEXEC, 0) });
    match opened {
        // SAFETY: syncs a folder.
        Ok(folder) if !err::is(unsafe { syscall!(FSYNC, folder.fd) }) => {}
        // One that may be searched and not read.
        _ => unsynced.more = true,
    }
}

/// What a second look needs, as the store keeps it.
type Kept = [u64; witness::WORDS + 1];

/// Puts into the next commit what is to be seen before the call that it stands before.
pub fn save_witness(e: &mut Engine, call: &Call) {
    if let Some(witness) = row(call.nr).filter(|row| row.class == Class::Once).map(|row| row.witness) {
        let mut kept: Kept = [0; witness::WORDS + 1];
        kept[0] = e.store().seq() + 1;
        kept[1..].copy_from_slice(&witness::look(call, witness));
        let store = e.store();
        store.begin();
        store.put(object::WITNESS, 0, bytemuck::cast_slice(&kept));
    }
}

/// What was to be seen before the call of commit `seq`, if the store has it.
pub fn load_witness(e: &mut Engine, seq: u64) -> Option<[u64; witness::WORDS]> {
    let mut kept: Kept = [0; witness::WORDS + 1];
    let bytes = bytemuck::cast_slice_mut(&mut kept);
    let is_whole = is_durable(e) && e.store().object(object::WITNESS, 0, bytes) == Some(bytes.len());
    let mut words = [0; witness::WORDS];
    words.copy_from_slice(&kept[1..]);
    (is_whole && kept[0] == seq).then_some(words)
}
