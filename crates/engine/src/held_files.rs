//! Files that the program maps shared and may close, of which the mapping keeps more than the content: a file without a name (a memfd,
//! an unlinked one), which a restored process could not map again, and one that was locked (flock) through the descriptor that was
//! mapped, whose lock lasts as long as the mapping. The engine keeps a descriptor of its own of each, as long as it is mapped.

use crate::calls::descriptors;
use crate::control::degrade;
use crate::dispatch::Call;
use crate::own_descriptors::Passing;
use crate::regions::{self, Regions};
use crate::state::{Engine, OwnFd};
use crate::sys::{err, nr, syscall};
use crate::undo::look::{self, Identity, Look};
use outlast_image::degradation::Degradation;
use outlast_image::layout::HELD_FILES;
use outlast_image::region::backing;

const O_CLOEXEC: u64 = 0o2000000;
const O_NOFOLLOW: u64 = 0o400000;
const O_RDWR: u64 = 2;
const AT_FDCWD: u64 = -100i64 as u64;

/// A file that is held, or none.
#[derive(Clone, Copy)]
struct File {
    identity: Identity,
    /// How many commits in a row have not found it mapped.
    idle: u32,
    /// Others may wait for the end of a lock.
    may_be_locked: bool,
    /// Every mapping of it lies in here.
    within: (u64, u64),
}

impl File {
    const NONE: File = File { identity: Identity::NONE, idle: 0, may_be_locked: false, within: (0, 0) };

    fn is_there(&self) -> bool {
        self.identity != Identity::NONE
    }

    fn may_be_mapped_in(&self, start: u64, end: u64) -> bool {
        self.within.0 < end && start < self.within.1
    }

    fn is_mapped_in(&mut self, start: u64, end: u64) {
        self.within = (self.within.0.min(start), self.within.1.max(end));
    }
}

/// The files, in the order of the engine's descriptors for them.
pub struct Held {
    files: [File; HELD_FILES],
    /// The program may map files that have a name.
    maps_named: bool,
}

impl Held {
    pub const NONE: Held = Held { files: [File::NONE; HELD_FILES], maps_named: false };

    /// Lets go of what the regions of two commits in a row do not have: nobody goes back to one before them. `own` is the first of
    /// the engine's descriptors; `open`: places of files that are in use otherwise, as bits.
    pub fn look(&mut self, own: i32, object: &[u8], open: u32) {
        for (place, file) in self.files.iter_mut().enumerate().filter(|(_, file)| file.is_there()) {
            let is_mapped = Regions::new(object).any(|m| m.region.inode == file.identity.inode());
            file.idle = if is_mapped || open >> place & 1 != 0 { 0 } else { file.idle + 1 };
            if file.idle > 1 && descriptors::may_hold_record_lock(number(own, place)) {
                // They would end with this.
                file.idle = 0;
            }
            if file.idle > 1 {
                let_go(own, place, file);
            }
        }
    }

    /// How many more can be held.
    pub fn room(&self) -> usize {
        self.files.iter().filter(|file| !file.is_there()).count()
    }

    /// Is there a file at this place, and only kept for what is mapped of it?
    pub fn is_plain(&self, place: usize) -> bool {
        self.files[place].is_there() && !self.files[place].may_be_locked
    }

    /// The engine's descriptor of a file. `own` is the first of them.
    pub fn find(&self, own: i32, inode: u64) -> Option<i32> {
        let place = self.files.iter().position(|file| file.is_there() && file.identity.inode() == inode)?;
        Some(number(own, place))
    }

    /// Would others notice when the program maps nothing in `start..end` any more?
    pub fn may_be_locked(&self, start: u64, end: u64) -> bool {
        self.files.iter().any(|file| file.may_be_locked && file.may_be_mapped_in(start, end))
    }

    /// What lay at `old` lies at `new`, or at both.
    pub fn moved(&mut self, old: (u64, u64), new: (u64, u64)) {
        self.files
            .iter_mut()
            .filter(|file| file.may_be_mapped_in(old.0, old.1))
            .for_each(|file| file.is_mapped_in(new.0, new.1));
    }

    /// Is there one that the next commit may find unused?
    pub fn is_idle(&self) -> bool {
        self.files.iter().any(|file| file.is_there() && file.idle > 0)
    }
}

fn let_go(own: i32, place: usize, file: &mut File) {
    *file = File::NONE;
    // SAFETY: both numbers are the engine's; the session occupies what is in no use.
    unsafe { syscall!(nr::DUP3, own + OwnFd::Session as i32, number(own, place), O_CLOEXEC) };
}

/// The program has mapped the file shared, at `start..end`.
pub fn mapped(e: &mut Engine, fd: i32, (start, end): (u64, u64)) {
    let Ok(look) = look::of(fd) else { return };
    if !look.is_regular() {
        return;
    }
    e.held.maps_named |= look.links != 0;
    let may_be_locked = may_be_locked(e, fd);
    if look.links == 0 || may_be_locked {
        let is_held = hold(e, &look, fd, may_be_locked);
        e.held
            .files
            .iter_mut()
            .filter(|file| file.identity == look.identity)
            .for_each(|file| file.is_mapped_in(start, end));
        if may_be_locked && !is_held {
            // A death ends the lock.
            degrade(Degradation::KernelObject);
        }
    }
}

/// The program is about to lock a file (flock). Others may wait for the end of the last mapping.
pub fn locking(e: &mut Engine, fd: i32) {
    let Some(look) = look::of(fd).ok().filter(|look| look.links != 0) else { return };
    let is_it = |file: &&mut File| file.identity == look.identity;
    e.held.files.iter_mut().filter(is_it).for_each(|file| file.may_be_locked = true);
}

/// The program has mapped a file of which the engine may still hold an earlier descriptor.
pub fn replace_idle(e: &mut Engine, look: &Look, fd: i32) {
    let Some(place) = e.held.files.iter().position(|file| file.identity == look.identity) else { return };
    let held = number(e.fds.own, place);
    let is_in_use = e.shared_memory.of_place(place).is_some() || e.held.files[place].may_be_locked;
    if !is_in_use && !descriptors::may_hold_record_lock(held) {
        // SAFETY: the number is the engine's.
        unsafe { syscall!(nr::DUP3, fd, held, O_CLOEXEC) };
    }
}

/// The program has unmapped `start..end`, after a commit if [`Held::may_be_locked`] said so.
pub fn unmapped(e: &mut Engine, start: u64, end: u64) {
    let own = e.fds.own;
    for place in 0..HELD_FILES {
        let file = e.held.files[place];
        if file.may_be_locked && file.may_be_mapped_in(start, end) {
            match extent(e, &file.identity) {
                Some(within) => e.held.files[place].within = within,
                None => let_go(own, place, &mut e.held.files[place]),
            }
        }
    }
}

/// From the first mapping of the file to the last one's end, if there is any.
pub fn extent(e: &Engine, file: &Identity) -> Option<(u64, u64)> {
    let mut extent: Option<(u64, u64)> = None;
    regions::for_each(regions::read_maps(), (e.kernel.start_brk, e.kernel.brk), |m| {
        if matches!(m.region.backing, backing::SHARED_FILE | backing::OWN_FILE) && m.region.inode == file.inode() {
            let start = extent.map_or(m.region.start, |(start, _)| start);
            extent = Some((start, m.region.end));
        }
    });
    extent
}

/// The program is about to take a name from a file: what it maps of it, it may have closed.
pub fn unlinking(e: &mut Engine, call: &Call) {
    let (dir, path) = match call.nr {
        nr::UNLINK => (AT_FDCWD, call.args[0]),
        nr::UNLINKAT => (call.args[0], call.args[1]),
        _ => return,
    };
    if !e.held.maps_named {
        return;
    }
    let Some(look) = look::at(dir as i64, path as *const u8).ok().filter(|look| look.is_regular() && look.links == 1)
    else {
        return;
    };
    // SAFETY: the kernel checks the program's pointer.
    let open = |mode| Passing::of(|| unsafe { syscall!(nr::OPENAT, dir, path, mode | O_NOFOLLOW | O_CLOEXEC, 0) });
    if extent(e, &look.identity).is_some() {
        if let Ok(file) = open(O_RDWR).or_else(|_| open(0)) {
            hold(e, &look, file.fd as i32, false);
        }
    }
}

/// Keeps a copy of the descriptor. With no place left (false) the mapping may be lost in a recovery, which then says so.
fn hold(e: &mut Engine, look: &Look, fd: i32, may_be_locked: bool) -> bool {
    let known = |file: &File| file.identity == look.identity && file.may_be_locked >= may_be_locked;
    if e.held.files.iter().any(known) {
        return true;
    }
    let Some(free) = e.held.files.iter().position(|file| !file.is_there()) else { return false };
    // SAFETY: the number is the engine's.
    let is_held = !err::is(unsafe { syscall!(nr::DUP3, fd, number(e.fds.own, free), O_CLOEXEC) });
    if is_held {
        let within = extent(e, &look.identity).unwrap_or_default();
        e.held.files[free] = File { identity: look.identity, idle: 0, may_be_locked, within };
    }
    is_held
}

/// Does others' waiting end only with the last mapping?
fn may_be_locked(e: &Engine, fd: i32) -> bool {
    e.kernel.locks != 0 && descriptors::may_hold_lasting_lock(fd)
}

/// Keeps a copy of the descriptor of a file that the program has mapped. Its place.
pub fn hold_mapped(e: &mut Engine, look: &Look, fd: i32) -> Option<usize> {
    let may_be_locked = may_be_locked(e, fd);
    let is_held = hold(e, look, fd, may_be_locked);
    e.held.files.iter().position(|held| is_held && held.identity == look.identity)
}

/// The same of one that the program maps or has open, and whose lock nobody waits for.
pub fn hold_unlocked(e: &mut Engine, look: &Look, fd: i32) -> Option<usize> {
    let place = if may_be_locked(e, fd) { None } else { hold_mapped(e, look, fd) };
    place.filter(|place| e.held.is_plain(*place))
}

/// The engine's descriptor for a place; `own` is the first.
pub fn number(own: i32, place: usize) -> i32 {
    own + OwnFd::Held as i32 + place as i32
}

/// In a restored process: what its predecessors held.
pub fn recover(e: &mut Engine) {
    let file_of = |fd| match look::of(fd) {
        Ok(look) if look.is_regular() => look.identity,
        _ => Identity::NONE,
    };
    let session = file_of(e.own_fd(OwnFd::Session));
    for place in 0..HELD_FILES {
        let identity = file_of(number(e.fds.own, place));
        let is_session = identity == session;
        e.held.files[place] = match identity != Identity::NONE && !is_session {
            true => {
                let may_be_locked = descriptors::may_hold_lasting_lock(number(e.fds.own, place));
                File { identity, idle: 0, may_be_locked, within: (0, u64::MAX) }
            }
            false => File::NONE,
        };
    }
    e.held.maps_named = true;
}
