//! Making rings.

use super::frame::purpose;
use super::layout::{array, notes, word, Head, Notes, MAGIC};
use super::{code, files, register};
use crate::calls::{descriptors, memory};
use crate::dispatch::{self, Call};
use crate::state::Engine;
use crate::sys::{err, nr};
use crate::thread::Thread;
use crate::user;
use bytemuck::{Pod, Zeroable};
use outlast_image::kernel::ProgramRing;

pub const EFD_CLOEXEC_NONBLOCK: u64 = 0o2000000 | 0o4000;
const MOST_ENTRIES: u32 = 32768;
pub const MAP_PRIVATE_ANONYMOUS: u64 = 0x22;

pub mod flag {
    pub const CQSIZE: u32 = 1 << 3;
    pub const CLAMP: u32 = 1 << 4;
    pub const ATTACH_WQ: u32 = 1 << 5;
    pub const R_DISABLED: u32 = 1 << 6;
    pub const SUBMIT_ALL: u32 = 1 << 7;
    pub const COOP_TASKRUN: u32 = 1 << 8;
    pub const TASKRUN_FLAG: u32 = 1 << 9;
    pub const SINGLE_ISSUER: u32 = 1 << 12;
    pub const DEFER_TASKRUN: u32 = 1 << 13;
    pub const NO_SQARRAY: u32 = 1 << 16;
    /// All that are served. What polls (SQPOLL, IOPOLL), other sizes of entries, and memory that the program brings are not.
    pub const SERVED: u32 = CQSIZE
        | CLAMP
        | ATTACH_WQ
        | R_DISABLED
        | SUBMIT_ALL
        | COOP_TASKRUN
        | TASKRUN_FLAG
        | SINGLE_ISSUER
        | DEFER_TASKRUN
        | NO_SQARRAY;
}

/// SINGLE_MMAP, NODROP, SUBMIT_STABLE, RW_CUR_POS, CUR_PERSONALITY, FAST_POLL, POLL_32BITS, EXT_ARG, NATIVE_WORKERS, CQE_SKIP, LINKED_FILE.
const FEATURES: u32 = 0x7f | 1 << 8 | 1 << 9 | 1 << 11 | 1 << 12;

/// `struct io_uring_params`.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Params {
    sq_entries: u32,
    cq_entries: u32,
    flags: u32,
    sq_thread_cpu: u32,
    sq_thread_idle: u32,
    features: u32,
    wq_fd: u32,
    reserved: [u32; 3],
    sq: SqOffsets,
    cq: CqOffsets,
}

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct SqOffsets {
    head: u32,
    tail: u32,
    mask: u32,
    entries: u32,
    flags: u32,
    dropped: u32,
    array: u32,
    reserved: u32,
    user: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct CqOffsets {
    head: u32,
    tail: u32,
    mask: u32,
    entries: u32,
    overflow: u32,
    cqes: u32,
    flags: u32,
    reserved: u32,
    user: u64,
}

const _: () = assert!(size_of::<Params>() == 120);

fn sizes(asked: u32, p: &Params) -> Option<(u32, u32)> {
    let clamp = p.flags & flag::CLAMP != 0;
    let entries = match asked {
        0 => return None,
        n if n > MOST_ENTRIES && clamp => MOST_ENTRIES,
        n if n > MOST_ENTRIES => return None,
        n => n.next_power_of_two(),
    };
    if p.flags & flag::CQSIZE == 0 {
        return Some((entries, entries * 2));
    }
    let completions = match p.cq_entries {
        0 => return None,
        n if n > 2 * MOST_ENTRIES && clamp => 2 * MOST_ENTRIES,
        n if n > 2 * MOST_ENTRIES => return None,
        n => n.next_power_of_two(),
    };
    (completions >= entries).then_some((entries, completions))
}

pub fn set_up(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    let at = call.args[1];
    let Some(mut p) = user::read::<Params>(at) else { return err::EFAULT };
    let is_odd = p.flags & !flag::SERVED != 0
        || p.reserved != [0; 3]
        || p.flags & flag::TASKRUN_FLAG != 0 && p.flags & (flag::COOP_TASKRUN | flag::DEFER_TASKRUN) == 0
        || p.flags & flag::DEFER_TASKRUN != 0 && p.flags & flag::SINGLE_ISSUER == 0;
    let Some((entries, completions)) = sizes(call.args[0] as u32, &p).filter(|_| !is_odd) else { return err::EINVAL };
    if p.flags & flag::ATTACH_WQ != 0 && super::find(e, p.wq_fd as i32).is_none() {
        return err::EINVAL;
    }
    let Some(place) = free_place(e, t) else { return err::ENOMEM };
    (p.sq_entries, p.cq_entries, p.features) = (entries, completions, FEATURES);
    p.sq = SqOffsets {
        head: word::SQ_HEAD as u32,
        tail: word::SQ_TAIL as u32,
        mask: word::SQ_MASK as u32,
        entries: word::SQ_ENTRIES as u32,
        flags: word::SQ_FLAGS as u32,
        dropped: word::SQ_DROPPED as u32,
        array: if p.flags & flag::NO_SQARRAY != 0 { 0 } else { array(completions) as u32 },
        ..SqOffsets::zeroed()
    };
    p.cq = CqOffsets {
        head: word::CQ_HEAD as u32,
        tail: word::CQ_TAIL as u32,
        mask: word::CQ_MASK as u32,
        entries: word::CQ_ENTRIES as u32,
        overflow: word::CQ_OVERFLOW as u32,
        cqes: word::CQES as u32,
        flags: word::CQ_FLAGS as u32,
        ..CqOffsets::zeroed()
    };
    if !user::write(at, &p) {
        return err::EFAULT;
    }
    let requests = (completions * 2).max(1024);
    let head = Head {
        magic: MAGIC,
        entries,
        completions,
        flags: p.flags,
        requests,
        is_disabled: (p.flags & flag::R_DISABLED != 0) as u32,
        one: 1,
        ..Head::default()
    };
    let notes = match make_notes(e, t, &head) {
        Ok(notes) => notes,
        Err(r) => return r,
    };
    let fd = descriptors::open(e, t, &Call { nr: nr::EVENTFD2, args: [0, EFD_CLOEXEC_NONBLOCK, 0, 0, 0, 0] });
    if err::is(fd) {
        unmap(e, t, notes.at, notes::len(requests));
        return fd;
    }
    e.kernel.rings[place] = ProgramRing { notes: notes.at, fd: fd as i32, unused: 0 };
    e.kernel_dirty = true;
    dispatch::slow_down_waits(true);
    fd
}

/// A place for one more ring: one that was never taken, or whose ring is closed and in no thread's hands.
fn free_place(e: &mut Engine, t: &mut Thread) -> Option<usize> {
    let place = e.kernel.rings.iter().position(|ring| {
        let notes = Notes { at: ring.notes };
        let is_in_use = |i| notes.frame(notes.frame_at(i)).is_some_and(|frame| frame.purpose != purpose::NONE);
        ring.notes == 0 || ring.fd < 0 && !(0..notes::FRAME_COUNT).any(is_in_use)
    })?;
    let old = Notes { at: e.kernel.rings[place].notes };
    let old_head = if old.at == 0 { None } else { old.head() };
    if let Some(head) = old_head {
        unmap(e, t, old.at, notes::len(head.requests));
        if head.files_at != 0 {
            unmap(e, t, head.files_at, files::files_len(head.files));
        }
        if head.buffers_at != 0 {
            unmap(e, t, head.buffers_at, register::buffers_len(head.buffers));
        }
    }
    // Those in use come first.
    let rings = &mut e.kernel.rings;
    let used = rings.iter().position(|ring| ring.notes == 0).unwrap_or(rings.len());
    if place == used {
        return Some(place);
    }
    rings.swap(place, used - 1);
    rings[used - 1] = ProgramRing::NONE;
    e.kernel_dirty = true;
    Some(used - 1)
}

/// Memory for the engine's own use of the ring, as the program would map it.
pub fn map(e: &mut Engine, t: &mut Thread, len: u64) -> Result<u64, i64> {
    match memory::serve(e, t, &Call { nr: nr::MMAP, args: [0, len, 3, MAP_PRIVATE_ANONYMOUS, !0, 0] }) {
        r if err::is(r) => Err(r),
        at => Ok(at as u64),
    }
}

pub fn unmap(e: &mut Engine, t: &mut Thread, at: u64, len: u64) {
    memory::serve(e, t, &Call { nr: nr::MUNMAP, args: [at, len, 0, 0, 0, 0] });
}

fn make_notes(e: &mut Engine, t: &mut Thread, head: &Head) -> Result<Notes, i64> {
    let notes = Notes { at: map(e, t, notes::len(head.requests))? };
    let is_written = user::write_bytes(notes.at, &code::bytes()) && notes.set_head(head);
    let protect = Call { nr: nr::MPROTECT, args: [notes.at, 4096, 5, 0, 0, 0] };
    match if is_written { memory::serve(e, t, &protect) } else { err::ENOMEM } {
        0 => Ok(notes),
        r => {
            unmap(e, t, notes.at, notes::len(head.requests));
            Err(r)
        }
    }
}

/// The program has closed `fd`. A ring's notes stay: a thread may be in them.
pub fn closed(e: &mut Engine, fd: i32) {
    for ring in e.kernel.rings.iter_mut().filter(|ring| ring.notes != 0 && ring.fd == fd) {
        ring.fd = -1;
        e.kernel_dirty = true;
    }
}
