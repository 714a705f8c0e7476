//! Takes files back to the commit, entry by entry, the newest first.

use super::change::{flags_of, O_APPEND};
use super::content::{open_again, BytesEntry, FileEntry, O_ACCMODE, O_DIRECT};
use super::exclusive::is_alone;
use super::hidden;
use super::look::{self, Identity};
use super::names::{GoneEntry, MovedEntry, RENAME_EXCHANGE};
use super::place::Place;
use crate::control::degrade;
use crate::mutant::without;
use crate::own_descriptors::Passing;
use crate::scratch;
use crate::state::{journal, Engine};
use crate::sys::{err, nr, syscall};
use bytemuck::Pod;
use outlast_image::degradation::Degradation;
use outlast_image::mutant::Mutant;
use outlast_store::ENTRY_MAX;

const AT_REMOVEDIR: u64 = 0x200;
const O_WRONLY_NOFOLLOW_NONBLOCK: u64 = 0o1 | 0o400000 | 0o4000;
const O_WRONLY: u64 = 1;
const O_RDONLY: i64 = 0;
const RENAME_NOREPLACE: u64 = 1;

/// The file whose entries are being undone.
pub struct Rollback {
    /// Where its `FILE` lies.
    at: u64,
    file: Option<File>,
}

struct File {
    fd: i32,
    size: u64,
    /// Closes it, if it was opened for this.
    _passing: Option<Passing>,
}

impl Rollback {
    pub fn new() -> Rollback {
        Rollback { at: u64::MAX, file: None }
    }

    /// Undoes the entry of a journal at `at`, if it is one of a file.
    pub fn undo(&mut self, e: &mut Engine, at: u64) {
        let bytes = &mut scratch::object_buffer()[..ENTRY_MAX];
        let Some((kind, found, next)) = e.store().journal_read(at) else { return };
        let len = found.len();
        bytes[..len].copy_from_slice(found);
        let bytes = &bytes[..len];
        if !matches!(kind, journal::FILE | journal::BYTES) {
            // Its number may be one that an older entry gives back to the program.
            *self = Rollback::new();
        }
        let done = match kind {
            journal::FILE | journal::BYTES if without(Mutant::ContentUndo) => Some(()),
            journal::MADE | journal::GONE | journal::MOVED if without(Mutant::NameUndo) => Some(()),
            journal::FILE => self.set_size(e, at),
            journal::BYTES => self.write_back(e, bytes),
            journal::MADE => remove_made(e, bytes, next),
            journal::GONE => bring_back(bytes),
            journal::MOVED => move_back(bytes),
            _ => Some(()),
        };
        if done.is_none() {
            degrade(Degradation::FileKept);
        }
    }

    /// The file of the `FILE` at `at`, open for writing. `None`: it cannot be had, or others have it open.
    fn open(&mut self, e: &mut Engine, at: u64) -> Option<&File> {
        if self.at != at {
            (self.at, self.file) = (at, None);
            self.file = open(e, at);
        }
        self.file.as_ref()
    }

    fn set_size(&mut self, e: &mut Engine, at: u64) -> Option<()> {
        let file = self.open(e, at)?;
        if look::of(file.fd).ok()?.size != file.size {
            // SAFETY: the descriptor is the program's or this value's own.
            let r = unsafe { syscall!(nr::FTRUNCATE, file.fd, file.size) };
            return (!err::is(r)).then_some(());
        }
        Some(())
    }

    fn write_back(&mut self, e: &mut Engine, bytes: &[u8]) -> Option<()> {
        let (head, mut bytes) = split::<BytesEntry>(bytes)?;
        let fd = self.open(e, head.at)?.fd;
        let mut offset = head.offset;
        while !bytes.is_empty() {
            // SAFETY: reads the bytes only.
            match unsafe { syscall!(nr::PWRITE64, fd, bytes.as_ptr(), bytes.len(), offset) } {
                n @ 1.. => {
                    offset += n as u64;
                    bytes = &bytes[n as usize..];
                }
                err::EINTR => {}
                _ => return None,
            }
        }
        Some(())
    }
}

/// Takes a plain value from the front.
fn split<T: Pod>(bytes: &[u8]) -> Option<(T, &[u8])> {
    let (head, rest) = bytes.split_at_checked(size_of::<T>())?;
    Some((bytemuck::pod_read_unaligned(head), rest))
}

fn open(e: &mut Engine, at: u64) -> Option<File> {
    let mut path = [0u8; 4097];
    let (kind, bytes, _) = e.store().journal_read(at)?;
    let (entry, name) = split::<FileEntry>(bytes).filter(|_| kind == journal::FILE)?;
    path.get_mut(..name.len()).filter(|_| name.len() < 4097)?.copy_from_slice(name);
    let is_it = |fd: i32| look::of(fd).is_ok_and(|look| look.identity == entry.file);
    let own = entry.fd as i32;
    let file = |fd: i32, passing: Option<Passing>| Some(File { fd, size: entry.size, _passing: passing });
    if is_it(own) && flags_of(own) & O_ACCMODE != O_RDONLY {
        if !is_alone(e, own, &entry.file) {
            return None;
        }
        // Where only the end of the file changed, its size is all that has to be set.
        if flags_of(own) & (O_APPEND | O_DIRECT) == 0 {
            return file(own, None);
        }
        let again = open_again(own, O_WRONLY);
        return file(again.as_ref().map_or(own, |passing| passing.fd as i32), again);
    }
    let passing = Passing::open(path.as_ptr(), O_WRONLY_NOFOLLOW_NONBLOCK).ok()?;
    let fd = passing.fd as i32;
    if is_it(fd) && is_alone(e, fd, &entry.file) {
        return file(fd, Some(passing));
    }
    None
}

/// Removes a name that was made, if it still has what was made.
fn remove_made(e: &mut Engine, bytes: &[u8], next: u64) -> Option<()> {
    let (place, _) = Place::decode(bytes)?;
    let made = match e.store().journal_read(next) {
        Some((journal::MADE_AS, bytes, _)) => Some(split::<Identity>(bytes)?.0),
        // It was not over, and may have been made.
        _ => None,
    };
    let Some(look) = place.look() else { return Some(()) };
    match made {
        Some(Identity::NONE) => return Some(()),
        Some(file) if file != look.identity => return None,
        _ => {}
    }
    let flags = if look.is_folder() { AT_REMOVEDIR } else { 0 };
    // SAFETY: the name ends with a NUL.
    let r = unsafe { syscall!(nr::UNLINKAT, place.folder(), place.name(), flags) };
    (!err::is(r)).then_some(())
}

/// Gives a name back to what lost it.
fn bring_back(bytes: &[u8]) -> Option<()> {
    let (gone, name) = split::<GoneEntry>(bytes)?;
    let (place, _) = Place::decode(name)?;
    let now = place.identity();
    if now == gone.file {
        // It was not removed, or has come back before.
        hidden::remove(&place, gone.hidden);
        return Some(());
    }
    if now != Identity::NONE {
        return None;
    }
    let r = rename(&place, hidden::name(gone.hidden).as_ptr(), &place, place.name());
    (!err::is(r)).then_some(())
}

/// Moves what was moved back.
fn move_back(bytes: &[u8]) -> Option<()> {
    let (moved, names) = split::<MovedEntry>(bytes)?;
    let (from, rest) = Place::decode(names)?;
    let (to, _) = Place::decode(rest)?;
    let (old, new) = (from.identity(), to.identity());
    let exchanged = moved.flags & RENAME_EXCHANGE != 0;
    if old == moved.file || new != moved.file {
        // It was not moved, or is back; or somebody has taken it away.
        return (old == moved.file).then_some(());
    }
    if old != if exchanged { moved.other } else { Identity::NONE } {
        return None;
    }
    let r = if exchanged {
        // SAFETY: names end with a NUL.
        unsafe { syscall!(nr::RENAMEAT2, to.folder(), to.name(), from.folder(), from.name(), RENAME_EXCHANGE) }
    } else {
        rename(&to, to.name(), &from, from.name())
    };
    (!err::is(r)).then_some(())
}

/// Renames, where nothing has the new name.
fn rename(from: &Place, name: *const u8, to: &Place, new: *const u8) -> i64 {
    // SAFETY: the names end with a NUL.
    unsafe {
        match syscall!(nr::RENAMEAT2, from.folder(), name, to.folder(), new, RENAME_NOREPLACE) {
            // The file system cannot exclude that.
            err::EINVAL => syscall!(nr::RENAMEAT, from.folder(), name, to.folder(), new),
            r => r,
        }
    }
}
