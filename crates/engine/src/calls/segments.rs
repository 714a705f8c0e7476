//! Shared memory of System V. A segment's content is committed like other shared memory; a restored process attaches it again where it was.
//! As long as nobody else has it attached, its content goes back to the commit with the rest of memory, also if it was
//! removed and so died with the process. What several processes have attached stays as it is.

use super::objects;
use crate::control::degrade;
use crate::dispatch::{native, visible, Call};
use crate::own_files;
use crate::regions::{self, Regions};
use crate::rewrite;
use crate::state::Engine;
use crate::sys::{err, nr, syscall};
use crate::thread::Thread;
use crate::tracker::areas::{area_flag, Area};
use crate::tracker::{Content, Track};
use crate::user;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use outlast_image::degradation::Degradation;
use outlast_image::layout::{ENGINE_BASE, ENGINE_END};
use outlast_image::region::{backing, Region};

const SHMGET: u64 = 29;
const SHMAT: u64 = 30;
const SHMCTL: u64 = 31;
const SHMDT: u64 = 67;
const IPC_PRIVATE: u64 = 0;
const IPC_CREAT_EXCL: u64 = 0o3000;
const IPC_EXCL: u64 = 0o2000;
const IPC_RMID: u64 = 0;
const IPC_SET: u64 = 1;
const IPC_STAT: u64 = 2;
const SHM_LOCK: u64 = 11;
const SHM_UNLOCK: u64 = 12;
const SHM_STAT: u64 = 13;
const SHM_STAT_ANY: u64 = 15;
const SHM_RDONLY: u64 = 0o10000;
const SHM_REMAP: u64 = 0o40000;
const SHM_EXEC: u64 = 0o100000;
const MADV_REMOVE: u64 = 9;
const MADV_POPULATE_READ: u64 = 22;
const MREMAP_MAYMOVE_FIXED: u64 = 3;
/// Where nothing of a program or the kernel is mapped: a segment is attached here before it goes to its place.
const WAITING_ROOM: u64 = ENGINE_END + (2 << 30);

/// Where segments are attached: an anchor that is cloned from the program lets go of them.
static ATTACHED: [AtomicU64; 64] = [const { AtomicU64::new(0) }; 64];

/// Is it a call on segments?
pub fn is_one(call: u64) -> bool {
    matches!(call, SHMGET | SHMAT | SHMCTL | SHMDT)
}

pub fn serve(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    match call.nr {
        SHMAT => attach(e, t, call),
        SHMDT => detach(e, t, call),
        _ if objects::makes(call) => objects::serve(e, t, call),
        SHMCTL if !matches!(call.args[1], IPC_RMID | IPC_SET | SHM_LOCK | SHM_UNLOCK) => ask(call),
        _ => visible(e, t, call),
    }
}

/// The result of a call that a dead predecessor may have made before; `r` is what making it again returned.
pub fn repeated(e: &Engine, call: &Call, r: i64) -> i64 {
    const EIDRM: i64 = -43;
    match (call.nr, r) {
        (SHMCTL, err::EINVAL | EIDRM) if call.args[1] == IPC_RMID => 0,
        (SHMGET, err::EEXIST) if call.args[2] & IPC_CREAT_EXCL == IPC_CREAT_EXCL => {
            let [key, size, flags, ..] = call.args;
            // SAFETY: looks for the segment.
            let id = unsafe { syscall!(SHMGET, key, size, flags & !IPC_EXCL) };
            match look(id as u64) {
                Some(found) if found.creator == e.kernel.pid => id,
                _ => r,
            }
        }
        _ => r,
    }
}

/// What the kernel says of a segment.
struct Look {
    size: u64,
    creator: u32,
    attached: u64,
}

fn look(id: u64) -> Option<Look> {
    // `struct shmid64_ds`: permissions, size, three times, two process ids, number of attaches, two spare words.
    let mut stat = [0u64; 14];
    // SAFETY: the kernel writes 112 bytes.
    let r = unsafe { syscall!(SHMCTL, id, IPC_STAT, stat.as_mut_ptr()) };
    (r == 0).then_some(Look { size: stat[6], creator: stat[10] as u32, attached: stat[11] })
}

fn attach(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    let [id, at, flags, ..] = call.args;
    let Some(before) = look(id) else {
        // Without permission to look there is none to attach, or the memory is not the program's own.
        let r = native(call);
        if !err::is(r) {
            degrade(Degradation::SharedMapping);
            e.maps_dirty = true;
        }
        return r;
    };
    let len = before.size.saturating_add(4095) & !4095;
    if at < ENGINE_END && at.saturating_add(len) > ENGINE_BASE {
        return err::EINVAL;
    }
    let replaces = flags & SHM_REMAP != 0 && at != 0;
    if replaces {
        e.cool(at & !4095, (at & !4095).saturating_add(len));
        rewrite::unmapping(t, at & !4095, (at & !4095).saturating_add(len));
        own_files::unmapping(e, at & !4095, (at & !4095).saturating_add(len));
    }
    let r = native(call);
    if err::is(r) {
        return r;
    }
    let (start, end) = (r as u64, r as u64 + len);
    if replaces {
        rewrite::unmapped(start, end);
        own_files::unmapped(e, start, end);
        e.tracker.uncover(start, end);
        e.advice.unmapped(start, end);
        e.replaced(start, end);
        e.drop_range(start, end);
    }
    if before.attached > 0 && look(id).is_none_or(|now| now.attached > own_attaches(id).0) {
        degrade(Degradation::SharedMapping);
    }
    remember(start);
    let writes = if flags & SHM_RDONLY == 0 { 2 } else { 0 };
    let prot = 1 | writes | if flags & SHM_EXEC != 0 { 4 } else { 0 };
    e.tracker.cover(&Area { start, end, prot, flags: area_flag::SHARED }, Content::Unsaved);
    // What is in it already belongs to the next commit.
    // SAFETY: maps pages that are there.
    unsafe { syscall!(nr::MADVISE, start, len, MADV_POPULATE_READ) };
    e.tracker.written_by_kernel(start, end);
    e.maps_dirty = true;
    r
}

fn detach(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    let at = call.args[0];
    let (mut id, mut end) = (None, at);
    regions::for_each(regions::read_maps(), (e.kernel.start_brk, e.kernel.brk), |m| {
        let r = m.region;
        if r.backing == backing::SEGMENT && (r.start == at || id == Some(r.inode) && r.start == end) {
            (id, end) = (Some(r.inode), r.end);
        }
    });
    e.cool(at, end);
    rewrite::unmapping(t, at, end);
    let r = native(call);
    if r == 0 && id.is_some() {
        forget(at);
        rewrite::unmapped(at, end);
        e.tracker.uncover(at, end);
        e.advice.unmapped(at, end);
        e.replaced(at, end);
        e.drop_range(at, end);
        e.maps_dirty = true;
    }
    r
}

fn remember(start: u64) {
    if let Some(place) = ATTACHED.iter().find(|place| place.load(Relaxed) == 0) {
        place.store(start, Relaxed);
    }
}

fn forget(start: u64) {
    ATTACHED.iter().filter(|place| place.load(Relaxed) == start).for_each(|place| place.store(0, Relaxed));
}

/// A clone that is not the program lets go of all segments: who counts the attaches counts the program's only. But for those that are
/// shared with children: they have to outlast a death of all who use them.
pub fn let_go(e: &Engine) {
    let is_own = |place: &&AtomicU64| e.shared_memory.find(place.load(Relaxed)).is_none();
    for place in ATTACHED.iter().filter(is_own) {
        let start = place.swap(0, Relaxed);
        if start != 0 {
            // SAFETY: the memory is a copy's, which does not use it.
            unsafe { syscall!(SHMDT, start) };
        }
    }
}

/// How often this process has the segment attached, as the kernel counts: each piece of it. And as it would count without the
/// engine, whose protection of pages may make more pieces.
fn own_attaches(id: u64) -> (u64, u64) {
    let is_it = |r: &Region| (r.backing == backing::SEGMENT && r.inode == id) as u64;
    let (mut pieces, mut programs) = (0, 0);
    let text = regions::read_maps();
    regions::for_each_mapping(text, (0, 0), |m| pieces += is_it(&m.region));
    regions::for_each(text, (0, 0), |m| programs += is_it(&m.region));
    (pieces, programs)
}

/// Questions: the number of attaches is told as it would be without the engine.
fn ask(call: &Call) -> i64 {
    /// Of the number of attaches in `struct shmid64_ds`.
    const OFFSET: u64 = 88;
    let r = native(call);
    let id = match call.args[1] {
        IPC_STAT => call.args[0],
        SHM_STAT | SHM_STAT_ANY => r as u64,
        _ => return r,
    };
    if let (0.., Some(attached)) = (r, user::read::<u64>(call.args[2] + OFFSET)) {
        let (pieces, programs) = own_attaches(id);
        if pieces != programs {
            user::write(call.args[2] + OFFSET, &(attached - pieces.min(attached) + programs));
        }
    }
    r
}

/// Is segment `id` attached by nobody else, so that its content may go back to the commit?
pub fn is_alone(id: u64) -> bool {
    look(id).is_some_and(|now| now.attached <= own_attaches(id).0)
}

/// A restored process has attached nothing yet.
pub fn reset() {
    ATTACHED.iter().for_each(|place| place.store(0, Relaxed));
}

/// The attach of which the regions are being brought to their places: pieces of one attach must stay pieces of one, or shmdt
/// would not take them all.
#[derive(Default)]
pub struct Bringing {
    /// Where the first page of it belongs.
    base: u64,
    /// Its id in the commit, and that of the segment now: another if it had been removed and so died with the process.
    committed: u64,
    id: u64,
    /// Bytes of it, and how many of them were brought or passed by.
    len: u64,
    done: u64,
}

impl Bringing {
    /// Attaches a region's segment at its committed place, readable and as far as possible writable; the segment's id now. `None`:
    /// it cannot be had. `object`: all regions.
    pub fn bring(&mut self, r: &Region, object: &[u8]) -> Option<u64> {
        let base = r.start.wrapping_sub(r.offset);
        let is_next = (self.base, self.committed) == (base, r.inode) && self.len > 0 && self.done <= r.offset;
        if !is_next && !self.begin(base, r, object) {
            return None;
        }
        let len = r.end - r.start;
        if r.offset.checked_add(len).is_none_or(|end| end > self.len) {
            return None;
        }
        let from = WAITING_ROOM + r.offset;
        self.done = r.offset + len;
        // SAFETY: moves pages that wait to where nothing is.
        let moved = unsafe { syscall!(nr::MREMAP, from, len, len, MREMAP_MAYMOVE_FIXED, r.start) };
        (moved == r.start as i64).then_some(self.id)
    }

    fn begin(&mut self, base: u64, r: &Region, object: &[u8]) -> bool {
        self.end();
        let flags = if r.prot & 2 == 0 { SHM_RDONLY } else { 0 } | if r.prot & 4 != 0 { SHM_EXEC } else { 0 };
        *self = Bringing { base, committed: r.inode, ..Bringing::default() };
        // SAFETY: attaches where nothing is; makes a segment of the program's own, and removes it.
        unsafe {
            let there = look(r.inode).filter(|_| syscall!(SHMAT, r.inode, WAITING_ROOM, flags) == WAITING_ROOM as i64);
            if let Some(found) = there {
                (self.id, self.len) = (r.inode, found.size.saturating_add(4095) & !4095);
            } else {
                let of_this = Regions::new(object).map(|m| m.region).filter(|other| {
                    (other.backing, other.inode, other.start.wrapping_sub(other.offset)) == (r.backing, r.inode, base)
                });
                let len = of_this.map(|other| other.end - base).max().unwrap_or(0);
                let id = syscall!(SHMGET, IPC_PRIVATE, len, 0o600);
                if !err::is(id) && syscall!(SHMAT, id, WAITING_ROOM, 0) == WAITING_ROOM as i64 {
                    (self.id, self.len) = (id as u64, len);
                }
                syscall!(SHMCTL, id, IPC_RMID, 0);
            }
        }
        if self.len > 0 {
            remember(base);
        }
        self.len > 0
    }

    /// What the program has unmapped of the last attach goes.
    pub fn end(&mut self) {
        if self.len > 0 {
            // SAFETY: what waits there is nobody's.
            unsafe { syscall!(nr::MUNMAP, WAITING_ROOM, self.len) };
        }
        self.len = 0;
    }
}

/// Pages of a segment that no commit holds are empty.
pub fn empty(start: u64, end: u64) {
    if start < end {
        // SAFETY: the pages are the program's alone, and hold nothing that was committed.
        unsafe { syscall!(nr::MADVISE, start, end - start, MADV_REMOVE) };
    }
}
