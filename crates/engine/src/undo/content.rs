//! What a file holds, before it is overwritten, cut off or made longer.

use super::change::{change, cut, flags_of, target, Change, Cut};
use super::exclusive::{is_alone, is_shared};
use super::lease;
use super::look::{self, Identity, Look};
use super::place::path_of;
use super::{append, Failure};
use crate::control::degrade;
use crate::dispatch::Call;
use crate::own_descriptors::Passing;
use crate::scratch;
use crate::state::{journal, Engine};
use crate::sys::{err, nr, syscall};
use outlast_image::degradation::Degradation;
use outlast_image::descriptor::descriptor_kind as kind;
use outlast_store::ENTRY_MAX;

pub const O_ACCMODE: i64 = 3;
pub const O_RDWR: i64 = 2;
pub const O_DIRECT: i64 = 0o40000;

/// More than this is not copied: a commit costs less.
const MOST: u64 = 16 << 20;
/// Files that are kept in mind at a time.
const KNOWN: usize = 16;

/// What the journal holds of a file.
#[derive(Clone, Copy)]
struct Noted {
    file: Identity,
    /// After which commit; 0: none.
    seq: u64,
    /// Where its `FILE` lies.
    at: u64,
    /// Up to here the file may hold bytes that are older than the `FILE`.
    old: u64,
    /// Others have it open.
    shared: bool,
}

/// The files noted since the commit.
pub struct Known {
    files: [Noted; KNOWN],
    next: usize,
}

impl Known {
    pub const fn new() -> Known {
        let nothing = Noted { file: Identity::NONE, seq: 0, at: 0, old: 0, shared: false };
        Known { files: [nothing; KNOWN], next: 0 }
    }

    /// Files are about to get other names: the journal's are right only for what was noted so far.
    pub fn forget(&mut self) {
        *self = Known::new();
    }

    fn find(&mut self, file: &Identity, seq: u64) -> Option<usize> {
        self.files.iter().position(|noted| noted.seq == seq + 1 && noted.file == *file)
    }

    fn add(&mut self, noted: Noted) -> usize {
        let i = self.next;
        self.files[i] = noted;
        self.next = (i + 1) % KNOWN;
        i
    }
}

/// Notes what the call destroys.
pub fn note(e: &mut Engine, call: &Call) -> Result<(), Failure> {
    let Some(fd) = target(call) else { return cut(call).map_or(Ok(()), |cut| note_cut(e, cut)) };
    if e.fds.kind(fd) != kind::REGULAR {
        return Ok(());
    }
    let Ok(look) = look::of(fd) else { return Ok(()) };
    let change = change(call, fd, look.size);
    note_change(e, fd, &look, &change)
}

/// Notes only the size of the file that the call changes.
pub fn note_size(e: &mut Engine, call: &Call) -> Result<(), Failure> {
    let Some(fd) = target(call) else { return Ok(()) };
    let Ok(look) = look::of(fd) else { return Ok(()) };
    find_or_note(e, fd, &look).map(|_| ())
}

/// What became of [`note_mapped`].
pub enum Noting {
    Done,
    /// The journal is full.
    Full,
    /// Others have the file, or it cannot be undone.
    Kept,
}

/// Notes `from..to` of a file, which is open as `fd`, before the program writes there through a mapping.
pub fn note_mapped(e: &mut Engine, fd: i32, from: u64, to: u64) -> Noting {
    let Ok(look) = look::of(fd) else { return Noting::Kept };
    let (seq, file) = (e.store().seq(), look.identity);
    let is_known = e.undo.known.find(&file, seq).is_some();
    if !is_known && (is_shared(e, &file) || !lease::is_open_once(fd)) {
        return Noting::Kept;
    }
    match note_change(e, fd, &look, &Change { from, to, cuts: false }) {
        Ok(()) => match e.undo.known.find(&file, seq) {
            Some(i) if !e.undo.known.files[i].shared => Noting::Done,
            _ => Noting::Kept,
        },
        Err(Failure::Full) => Noting::Full,
        Err(Failure::Impossible) => Noting::Kept,
    }
}

fn note_cut(e: &mut Engine, (dir, path, size): Cut) -> Result<(), Failure> {
    // What cannot be opened so, the call will not cut off either, but for what is to be written only.
    match look::through(dir, path as *const u8) {
        Ok(look) if look.is_regular() && look.size > size => {}
        _ => return Ok(()),
    }
    const O_RDWR_NONBLOCK_CLOEXEC: u64 = 0o2 | 0o4000 | 0o2000000;
    // SAFETY: the path is the program's; the kernel checks it.
    let file = Passing::of(|| unsafe { syscall!(nr::OPENAT, dir, path, O_RDWR_NONBLOCK_CLOEXEC, 0) });
    let Ok(file) = file else { return Err(Failure::Impossible) };
    let fd = file.fd as i32;
    let Ok(look) = look::of(fd) else { return Err(Failure::Impossible) };
    note_change(e, fd, &look, &Change { from: size, to: u64::MAX, cuts: true })
}

fn note_change(e: &mut Engine, fd: i32, look: &Look, change: &Change) -> Result<(), Failure> {
    let i = find_or_note(e, fd, look)?;
    let Noted { at, old, shared, .. } = e.undo.known.files[i];
    if shared {
        return Ok(());
    }
    let (from, to) = (change.from, change.to.min(old).min(look.size));
    if from < to {
        if to - from > MOST {
            return Err(Failure::Impossible);
        }
        copy(e, fd, at, from, to)?;
    }
    if change.cuts {
        e.undo.known.files[i].old = old.min(change.from);
    }
    Ok(())
}

/// Where the file is kept in mind; noted now if it was not since the commit.
fn find_or_note(e: &mut Engine, fd: i32, look: &Look) -> Result<usize, Failure> {
    let (seq, file) = (e.store().seq(), look.identity);
    if let Some(i) = e.undo.known.find(&file, seq) {
        return Ok(i);
    }
    let shared = !is_alone(e, fd, &file);
    let at = e.store().journal_end();
    if shared {
        degrade(Degradation::FileKept);
    } else {
        let mut path = [0u8; 4096];
        let len = path_of(fd, &mut path).unwrap_or(0);
        let entry = scratch::object_buffer();
        let head = FileEntry { file, size: look.size, fd: fd as i64 };
        entry[..size_of::<FileEntry>()].copy_from_slice(bytemuck::bytes_of(&head));
        entry[size_of::<FileEntry>()..][..len].copy_from_slice(&path[..len]);
        append(e, journal::FILE, &entry[..size_of::<FileEntry>() + len])?;
    }
    Ok(e.undo.known.add(Noted { file, seq: seq + 1, at, old: look.size, shared }))
}

/// A `FILE` in the journal; the path follows.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
pub struct FileEntry {
    pub file: Identity,
    pub size: u64,
    pub fd: i64,
}

/// A `BYTES` in the journal; they follow.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
pub struct BytesEntry {
    /// Where the `FILE` lies.
    pub at: u64,
    pub offset: u64,
}

/// Copies `from..to` of the file into the journal.
fn copy(e: &mut Engine, fd: i32, at: u64, from: u64, to: u64) -> Result<(), Failure> {
    const HEAD: usize = size_of::<BytesEntry>();
    let flags = flags_of(fd);
    let reopened;
    let source = if flags & O_ACCMODE == O_RDWR && flags & O_DIRECT == 0 {
        fd
    } else {
        reopened = open_again(fd, 0).ok_or(Failure::Impossible)?;
        reopened.fd as i32
    };
    let entry = &mut scratch::object_buffer()[..ENTRY_MAX];
    let mut offset = from;
    while offset < to {
        let len = ((to - offset) as usize).min(ENTRY_MAX - HEAD);
        entry[..HEAD].copy_from_slice(bytemuck::bytes_of(&BytesEntry { at, offset }));
        // SAFETY: the kernel writes into the buffer.
        let n = unsafe { syscall!(nr::PREAD64, source, entry[HEAD..].as_mut_ptr(), len, offset) };
        match n {
            0 => break,
            1.. => append(e, journal::BYTES, &entry[..HEAD + n as usize])?,
            err::EINTR => {}
            _ => return Err(Failure::Impossible),
        }
        offset += n.max(0) as u64;
    }
    Ok(())
}

/// Opens what is open as `fd` once more.
pub fn open_again(fd: i32, flags: u64) -> Option<Passing> {
    crate::proc::open_again(fd, flags).ok()
}
