//! Contexts of asynchronous input and output (io_setup), which die with the address space. A restored program gets them again, at the
//! addresses by which it knows them, with the completions that it had not taken at the commit.
//!
//! What was submitted is waited for at once: the kernel writes to the program's memory behind the page tables, and no commit may
//! come in between. So requests on files run beside each other, but not beside the program. Made again after a death,
//! a request writes or reads the same. Requests to poll may wait for ever: with them a context is not brought back whole.

use crate::commit::{commit, commit_at_gate};
use crate::control::{degrade, phase};
use crate::dispatch::{interruptible, native, visible, Call};
use crate::regions;
use crate::scratch;
use crate::state::{object, Engine, OwnFd};
use crate::sys::{err, nr, syscall};
use crate::thread::Thread;
use crate::tracker::areas::{area_flag, Area};
use crate::tracker::{Content, Track};
use crate::user;
use bytemuck::{Pod, Zeroable};
use outlast_image::context::pending_kind;
use outlast_image::degradation::Degradation;
use outlast_image::event::phase as at;
use outlast_image::layout::{ENGINE_BASE, ENGINE_END};
use outlast_image::region::backing;

const IO_SETUP: u64 = 206;
const IO_DESTROY: u64 = 207;
const IO_GETEVENTS: u64 = 208;
const IO_SUBMIT: u64 = 209;
const IO_CANCEL: u64 = 210;
const IO_PGETEVENTS: u64 = 333;

const PREAD: u16 = 0;
const POLL: u16 = 5;
const PREADV: u16 = 7;
const MREMAP_MAYMOVE_FIXED: u64 = 3;
/// Of `struct aio_ring`: magic number and length of the head, which completions follow.
const RING_MAGIC: u32 = 0xa10a_10a1;
const HEAD_LEN: u64 = 32;
const EVENT_LEN: u64 = 32;
/// Between two looks whether requests are done.
const PAUSE: [u64; 2] = [0, 30_000];

/// Contexts that a program may have; of more no other can be made.
const MOST: usize = 16;
/// Completions of one context that are kept; the kernel gives a context hardly more than was asked for.
const EVENTS: u64 = 1 << 15;

/// A context, as a commit keeps it; the completions that wait in it follow, `struct io_event` each.
#[repr(C)]
#[derive(Clone, Copy, Default, Pod, Zeroable)]
struct Context {
    /// Where its ring is mapped, which is its name; 0: none.
    id: u64,
    /// What was asked for.
    requests: u32,
    /// Completions that wait.
    waiting: u32,
    /// Head and tail of the ring, to tell whether anything changed since the last commit.
    seen: [u32; 2],
}

static mut CONTEXTS: [Context; MOST] = [Context { id: 0, requests: 0, waiting: 0, seen: [0; 2] }; MOST];

fn contexts() -> &'static mut [Context; MOST] {
    // SAFETY: only whoever holds the engine's lock comes here, and never while another reference is in use.
    unsafe {
        let this = &raw mut CONTEXTS;
        &mut *this
    }
}

/// Is it a call on contexts?
pub fn is_one(nr: u64) -> bool {
    matches!(nr, IO_SETUP..=IO_CANCEL | IO_PGETEVENTS)
}

/// Does the call submit requests?
pub fn submits(call: &Call) -> bool {
    call.nr == IO_SUBMIT
}

pub fn serve(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    match call.nr {
        IO_SETUP => set_up(e, call),
        IO_DESTROY => destroy(e, call),
        IO_SUBMIT => submit(e, t, call),
        // What is taken from a context is the program's own: a restored one has it again.
        IO_GETEVENTS | IO_PGETEVENTS => interruptible(t, call),
        _ => visible(e, t, call),
    }
}

/// The ring of a context.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Ring {
    id: u32,
    size: u32,
    head: u32,
    tail: u32,
    magic: u32,
    features: [u32; 2],
    head_len: u32,
}

fn ring(id: u64) -> Option<Ring> {
    let ring = user::read::<Ring>(id)?;
    let is_one = ring.magic == RING_MAGIC && ring.head_len as u64 == HEAD_LEN && ring.size > 1;
    (is_one && ring.head < ring.size && ring.tail < ring.size).then_some(ring)
}

impl Ring {
    /// Bytes that it takes.
    fn len(&self) -> u64 {
        (HEAD_LEN + self.size as u64 * EVENT_LEN + 4095) & !4095
    }

    fn waiting(&self) -> u32 {
        (self.tail + self.size - self.head) % self.size
    }

    /// Completions since its tail was at `tail`.
    fn since(&self, tail: u32) -> u32 {
        (self.tail + self.size - tail) % self.size
    }
}

fn set_up(e: &mut Engine, call: &Call) -> i64 {
    let Some(place) = contexts().iter_mut().find(|context| context.id == 0) else { return err::EAGAIN };
    let r = native(call);
    if r != 0 {
        return r;
    }
    let Some(id) = user::read::<u64>(call.args[1]) else { return r };
    *place = Context { id, requests: call.args[0] as u32, ..Context::default() };
    let len = extent(id);
    e.tracker.cover(&Area { start: id, end: id + len, prot: 3, flags: area_flag::FOREIGN }, Content::Fresh);
    (e.maps_dirty, e.contexts_dirty) = (true, true);
    r
}

/// Bytes that are mapped for a context.
fn extent(id: u64) -> u64 {
    let mut len = 0;
    regions::for_each(regions::read_maps(), (0, 0), |m| {
        if m.region.backing == backing::CONTEXT && m.region.start == id {
            len = m.region.end - m.region.start;
        }
    });
    len
}

fn destroy(e: &mut Engine, call: &Call) -> i64 {
    let id = call.args[0];
    let len = extent(id);
    let r = native(call);
    if r == 0 {
        e.tracker.uncover(id, id + len);
        e.replaced(id, id + len);
        contexts().iter_mut().filter(|context| context.id == id).for_each(|context| *context = Context::default());
        (e.maps_dirty, e.contexts_dirty) = (true, true);
    }
    r
}

/// `struct iocb`.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Request {
    data: u64,
    key: u32,
    flags: u32,
    operation: u16,
    priority: u16,
    fd: u32,
    buffer: u64,
    len: u64,
    offset: u64,
    unused: u64,
    more_flags: u32,
    event: u32,
}

fn submit(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    if commit(e, call.pending(pending_kind::REDO)) == 0 {
        return interruptible(t, call);
    }
    phase(at::OPERATION);
    let r = make(e, t, call);
    t.regs.rax = r as u64;
    commit_at_gate(e);
    phase(at::COMPLETED);
    r
}

/// Submits, and waits until what was submitted is done.
pub fn make(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    let [id, count, list, ..] = call.args;
    let Some(before) = ring(id) else { return native(call) };
    let mut may_wait = false;
    for i in 0..count.min(before.size as u64) {
        let at = user::read::<u64>(list + i * 8);
        let Some((at, request)) = at.and_then(|at| Some((at, user::read::<Request>(at)?))) else { break };
        let end = |start: u64, len: u64| start.saturating_add(len).min(ENGINE_BASE.max(start));
        // The kernel writes the key of the request now, and what is read later.
        e.tracker.open(at, end(at, 64));
        may_wait |= request.operation == POLL;
        match request.operation {
            PREAD => open(e, request.buffer, request.len),
            PREADV => {
                for n in 0..request.len.min(1024) {
                    if let Some([start, len]) = user::read::<[u64; 2]>(request.buffer + n * 16) {
                        open(e, start, len);
                    }
                }
            }
            _ => {}
        }
    }
    if may_wait {
        degrade(Degradation::KernelObject);
    }
    let r = native(call);
    e.tracker.written_behind();
    if r > 0 && !may_wait {
        await_all(t, id, before.tail, r as u32);
        e.tracker.written_behind();
    }
    r
}

fn open(e: &mut Engine, start: u64, len: u64) {
    let end = start.saturating_add(len);
    if start < end && (end <= ENGINE_BASE || start >= ENGINE_END) {
        e.tracker.open(start, end);
    }
}

/// Waits until as many requests are done as were submitted since the ring's tail was at `tail`.
fn await_all(_: &Thread, id: u64, tail: u32, submitted: u32) {
    while ring(id).is_some_and(|ring| ring.since(tail) < submitted) {
        // SAFETY: sleeps; a signal is taken note of.
        unsafe { syscall!(nr::NANOSLEEP, PAUSE.as_ptr(), 0) };
    }
}

/// Puts into the commit that is being made what it has to hold of contexts.
pub fn save(e: &mut Engine) {
    let Some(store) = &mut e.store else { return };
    for (place, context) in contexts().iter_mut().enumerate() {
        let Some(ring) = (if context.id == 0 { None } else { ring(context.id) }) else {
            if e.contexts_dirty && store.object(object::CONTEXT, place as u64, &mut []).is_some() {
                store.delete(object::CONTEXT, place as u64);
            }
            continue;
        };
        if !e.contexts_dirty && context.seen == [ring.head, ring.tail] {
            continue;
        }
        context.seen = [ring.head, ring.tail];
        context.waiting = ring.waiting().min(EVENTS as u32);
        let events = &mut scratch::object_buffer()[..(context.waiting as u64 * EVENT_LEN) as usize];
        for (i, event) in events.chunks_exact_mut(EVENT_LEN as usize).enumerate() {
            let slot = (ring.head + i as u32) % ring.size;
            user::read_bytes(context.id + HEAD_LEN + slot as u64 * EVENT_LEN, event);
        }
        store.put2(object::CONTEXT, place as u64, bytemuck::bytes_of(context), events);
    }
    e.contexts_dirty = false;
}

/// Are there any?
pub fn exist(e: &Engine) -> bool {
    e.contexts_dirty || are_any()
}

/// Has the program any now?
pub fn are_any() -> bool {
    contexts().iter().any(|context| context.id != 0)
}

/// Those of this process go, before its memory is taken back.
pub fn leave() {
    for context in contexts().iter_mut().filter(|context| context.id != 0) {
        // SAFETY: the context is the program's, of which nothing is needed any more.
        unsafe { syscall!(IO_DESTROY, context.id) };
        *context = Context::default();
    }
}

/// A clone of the anchor has none, whatever the program had when the anchor was made.
pub fn forget() {
    *contexts() = [Context::default(); MOST];
}

/// Makes the contexts of the commit, in a process whose memory is back.
pub fn restore(e: &mut Engine) {
    for place in 0..MOST {
        const HEAD: usize = size_of::<Context>();
        let buf = scratch::object_buffer();
        let n = e.store().object(object::CONTEXT, place as u64, buf).unwrap_or(0).min(buf.len());
        let Some(head) = buf[..n].get(..HEAD) else { continue };
        let mut context: Context = bytemuck::pod_read_unaligned(head);
        if context.id != 0 && make_again(e, &context, &buf[HEAD..n]) {
            context.seen = [u32::MAX; 2];
            contexts()[place] = context;
        } else {
            degrade(Degradation::KernelObject);
        }
    }
    e.contexts_dirty = true;
}

fn make_again(e: &Engine, context: &Context, events: &[u8]) -> bool {
    let mut id = 0u64;
    // SAFETY: makes a context, which maps a ring, and moves that to where nothing is.
    unsafe {
        if syscall!(IO_SETUP, context.requests, &raw mut id) != 0 {
            return false;
        }
        let Some(len) = ring(id).map(|ring| ring.len()) else { return false };
        let len = extent(id).max(len);
        let is_free = context.id % 4096 == 0 && (context.id + len <= ENGINE_BASE || context.id >= ENGINE_END);
        let moved = is_free
            && (id == context.id
                || syscall!(nr::MREMAP, id, len, len, MREMAP_MAYMOVE_FIXED, context.id) == context.id as i64);
        if !moved {
            syscall!(IO_DESTROY, id);
            return false;
        }
    }
    complete(e, context.id, events)
}

/// Has the kernel complete as many requests as there were completions, and gives these their content.
fn complete(e: &Engine, id: u64, events: &[u8]) -> bool {
    // Reads nothing from a file.
    let request = Request { operation: PREAD, fd: e.own_fd(OwnFd::Session) as u32, ..Request::zeroed() };
    for (i, event) in events.chunks_exact(EVENT_LEN as usize).enumerate() {
        let list = [&raw const request];
        // SAFETY: the kernel reads the request, and writes its key.
        let r = unsafe { syscall!(IO_SUBMIT, id, 1, list.as_ptr()) };
        if r != 1 {
            return false;
        }
        while ring(id).is_some_and(|ring| ring.waiting() <= i as u32) {
            // SAFETY: sleeps.
            unsafe { syscall!(nr::NANOSLEEP, PAUSE.as_ptr(), 0) };
        }
        user::write_bytes(id + HEAD_LEN + i as u64 * EVENT_LEN, event);
    }
    true
}
