//! Making rings, and what the program maps of them.

use super::layout::{array, notes, purpose, word, Head, Notes, MAGIC, OFF_CQ_RING, OFF_SQES, OFF_SQ_RING, SQE_LEN};
use super::register;
use crate::calls::{descriptors, memory};
use crate::dispatch::{self, Call};
use crate::state::Engine;
use crate::sys::{err, nr, syscall};
use crate::thread::Thread;
use crate::user;
use bytemuck::{Pod, Zeroable};
use outlast_image::kernel::ProgramRing;

const EFD_CLOEXEC_NONBLOCK: u64 = 0o2000000 | 0o4000;
const MOST_ENTRIES: u32 = 32768;
const MAP_PRIVATE_ANONYMOUS: u64 = 0x22;
const MAP_FIXED_KINDS: u64 = 0x10 | 0x10_0000;
const MAP_TYPE: u64 = 15;
const MAP_ANONYMOUS: u64 = 0x20;

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

/// Where threads make the calls of entries: with the frame's address in `rbx` and [`MAGIC`] in `r12`, `io_uring_enter(-1, MAGIC,
/// frame, result)` follows each.
const CODE: [u8; 22] = [
    0x0f, 0x05, // syscall
    0x49, 0x89, 0xc2, // mov r10, rax
    0x48, 0x89, 0xda, // mov rdx, rbx
    0x4c, 0x89, 0xe6, // mov rsi, r12
    0x48, 0x83, 0xcf, 0xff, // or rdi, -1
    0xb8, 0xaa, 0x01, 0x00, 0x00, // mov eax, 426
    0x0f, 0x05, // syscall
];

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
            unmap(e, t, head.files_at, register::files_len(head.files));
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
    let is_written = user::write_bytes(notes.at, &CODE) && notes.set_head(head);
    let protect = Call { nr: nr::MPROTECT, args: [notes.at, 4096, 5, 0, 0, 0] };
    match if is_written { memory::serve(e, t, &protect) } else { err::ENOMEM } {
        0 => Ok(notes),
        r => {
            unmap(e, t, notes.at, notes::len(head.requests));
            Err(r)
        }
    }
}

/// What an mmap of a ring's descriptor is in its place: memory of the program's. `None`: it is of something else.
pub fn mapping(e: &Engine, call: &Call) -> Option<Result<Call, i64>> {
    let [at, len, prot, flags, fd, offset] = call.args;
    if flags & MAP_ANONYMOUS != 0 {
        return None;
    }
    let head = super::find(e, fd as i32)?.head()?;
    let most = match offset {
        OFF_SQ_RING | OFF_CQ_RING => array(head.completions) + head.entries as u64 * 4,
        OFF_SQES => head.entries as u64 * SQE_LEN,
        _ => return Some(Err(err::EINVAL)),
    };
    if len == 0 || len > most.next_multiple_of(4096) || flags & MAP_TYPE == 2 {
        return Some(Err(err::EINVAL));
    }
    Some(Ok(Call { nr: nr::MMAP, args: [at, len, prot, MAP_PRIVATE_ANONYMOUS | flags & MAP_FIXED_KINDS, !0, 0] }))
}

/// The program has mapped a part of the ring.
pub fn note_mapping(e: &Engine, call: &Call, at: u64) {
    let Some(notes) = super::find(e, call.args[4] as i32) else { return };
    let Some(mut head) = notes.head() else { return };
    match call.args[5] {
        OFF_SQES => head.sqes_at = at,
        OFF_CQ_RING => head.cq_at = at,
        _ => head.sq_at = at,
    }
    if call.args[5] != OFF_SQES {
        for (offset, value) in [
            (word::SQ_MASK, head.entries - 1),
            (word::SQ_ENTRIES, head.entries),
            (word::CQ_MASK, head.completions - 1),
            (word::CQ_ENTRIES, head.completions),
        ] {
            user::write(at + offset, &value);
        }
    }
    notes.set_head(&head);
}

/// The program has closed `fd`. A ring's notes stay: a thread may be in them.
pub fn closed(e: &mut Engine, fd: i32) {
    for ring in e.kernel.rings.iter_mut().filter(|ring| ring.notes != 0 && ring.fd == fd) {
        ring.fd = -1;
        e.kernel_dirty = true;
    }
}

/// After a cold resume: is it a ring's descriptor, and there again?
pub fn reopen(e: &Engine, fd: i32) -> bool {
    const O_CLOEXEC: u64 = 0o2000000;
    if super::find(e, fd).is_none() {
        return false;
    }
    // SAFETY: makes an eventfd under the number, which is free or not the program's yet.
    unsafe {
        let r = syscall!(nr::EVENTFD2, 0, EFD_CLOEXEC_NONBLOCK);
        if err::is(r) || r == fd as i64 {
            return r == fd as i64;
        }
        let is_there = !err::is(syscall!(nr::DUP3, r, fd, O_CLOEXEC));
        syscall!(nr::CLOSE, r);
        is_there
    }
}

/// In a restored process: whoever waits for a ring looks at it once more.
pub fn restore(e: &Engine) {
    for ring in e.kernel.rings.iter().filter(|ring| ring.notes != 0 && ring.fd >= 0) {
        ring_bell(ring.fd);
    }
    if super::exist(e) {
        dispatch::slow_down_waits(true);
    }
}

/// Makes a ring's descriptor readable.
pub fn ring_bell(fd: i32) {
    let one = 1u64;
    // SAFETY: reads the eight bytes of `one`; the descriptor does not block.
    unsafe { syscall!(nr::WRITE, fd, &raw const one, 8) };
}

/// Makes it unreadable.
pub fn silence(fd: i32) {
    let mut count = 0u64;
    // SAFETY: writes the eight bytes of `count`; the descriptor does not block.
    unsafe { syscall!(nr::READ, fd, &raw mut count, 8) };
}
