//! A context of asynchronous input and output (io_setup) of the engine's own: the kernel puts what a call comes to into the ring of the
//! context, as part of the call. The ring goes with the address space, but its pages do not while somebody holds them: a pipe whose
//! ends the anchor keeps refers to them (vmsplice), so that a successor reads there what the kernel has written last.
//!
//! It serves whatever has neither splice nor records: a write to a pipe whose reader does not read, packets, drivers without splice, and
//! what is typed at a terminal, its end of file, too.

use super::note::{how, note};
use super::transfer;
use crate::dispatch::{wait_for, Call};
use crate::held;
use crate::ring::{op, settled, Entry};
use crate::state::{Engine, OwnFd};
use crate::sys::{err, nr, syscall};
use crate::thread;
use core::ptr::{read_volatile, write_volatile};
use core::sync::atomic::{compiler_fence, Ordering::SeqCst};
use outlast_image::layout::{COMPLETIONS_BASE, COMPLETIONS_LEN, PAGE};

const IO_SETUP: u64 = 206;
const IO_DESTROY: u64 = 207;
const IO_GETEVENTS: u64 = 208;
const IO_SUBMIT: u64 = 209;
const TEE: u64 = 276;
const VMSPLICE: u64 = 278;
const F_SETPIPE_SZ: u64 = 1031;
const MREMAP_MAYMOVE_FIXED: u64 = 3;
const NONBLOCK: u64 = 2;
const PREAD: u16 = 0;
const PWRITE: u16 = 1;
const PWRITEV: u16 = 8;

/// The head of `struct aio_ring`, which events follow.
#[repr(C)]
#[derive(Clone, Copy)]
struct Head {
    id: u32,
    /// Places for events.
    size: u32,
    /// The next event that the program has not seen, and the place of the next one of the kernel's.
    head: u32,
    tail: u32,
    magic: u32,
    features: [u32; 2],
    len: u32,
}

const MAGIC: u32 = 0xa10a_10a1;

/// `struct io_event`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Event {
    data: u64,
    object: u64,
    result: i64,
    more: i64,
}

const HEAD_LEN: u64 = size_of::<Head>() as u64;
const EVENT_LEN: u64 = size_of::<Event>() as u64;
const _: () = assert!(HEAD_LEN == 32 && EVENT_LEN == 32);

/// `struct iocb`.
#[repr(C)]
#[derive(Default)]
struct Request {
    data: u64,
    key: u32,
    flags: u32,
    opcode: u16,
    priority: i16,
    fd: u32,
    buffer: u64,
    len: u64,
    offset: i64,
    reserved: u64,
    more_flags: u32,
    event_fd: u32,
}

const _: () = assert!(size_of::<Request>() == 64);

impl Head {
    /// Is it one that the kernel has written?
    fn is_whole(&self) -> bool {
        let is_one = self.magic == MAGIC && self.len as u64 == HEAD_LEN && self.size > 1;
        is_one && self.head < self.size && self.tail < self.size && self.bytes() <= COMPLETIONS_LEN
    }

    /// Bytes of the whole ring: a multiple of a page.
    fn bytes(&self) -> u64 {
        (HEAD_LEN + self.size as u64 * EVENT_LEN).next_multiple_of(PAGE)
    }
}

fn head() -> *mut Head {
    COMPLETIONS_BASE as *mut Head
}

/// Makes a context for this process, if the kernel gives one, in place of a predecessor's.
pub fn set_up(e: &mut Engine) {
    e.has_completions = false;
    let ends = [e.own_fd(OwnFd::CompletionsRead), e.own_fd(OwnFd::CompletionsWrite)];
    // SAFETY: addresses and numbers are the engine's own.
    unsafe {
        syscall!(nr::MUNMAP, COMPLETIONS_BASE, COMPLETIONS_LEN);
        transfer::make_pipe(ends);
        transfer::drain(ends[0]);
        let mut context = 0u64;
        if err::is(syscall!(IO_SETUP, 1, &raw mut context)) {
            return;
        }
        let made = read_volatile(context as *const Head);
        let len = made.bytes();
        let moved = made.is_whole()
            && syscall!(nr::MREMAP, context, len, len, MREMAP_MAYMOVE_FIXED, COMPLETIONS_BASE)
                == COMPLETIONS_BASE as i64;
        if !moved {
            syscall!(IO_DESTROY, context);
            return;
        }
        syscall!(nr::FCNTL, ends[1], F_SETPIPE_SZ, len);
        let vector = [COMPLETIONS_BASE, len];
        e.has_completions = syscall!(VMSPLICE, ends[1], vector.as_ptr(), 1, NONBLOCK) == len as i64;
        if !e.has_completions {
            syscall!(IO_DESTROY, COMPLETIONS_BASE);
        }
    }
}

/// The engine leaves the program alone.
pub fn give_up(e: &mut Engine) {
    if core::mem::take(&mut e.has_completions) {
        // SAFETY: the context is the engine's own, and nothing is under way.
        unsafe { syscall!(IO_DESTROY, COMPLETIONS_BASE) };
    }
}

/// Makes the read or write of `entry`, on `fd`, so that a successor finds what it came to. `None`: the descriptor's driver has nothing for
/// this, or there is no context, and nothing was done.
pub fn run(e: &Engine, id: u64, entry: &Entry, fd: i32) -> Option<i64> {
    if !e.has_completions {
        return None;
    }
    let opcode = match entry.opcode {
        op::READ => PREAD,
        op::WRITEV => PWRITEV,
        _ => PWRITE,
    };
    let (buffer, len) = (entry.addr, entry.len as u64);
    let request = Request { data: id, opcode, fd: fd as u32, buffer, len, ..Default::default() };
    let list = [&raw const request];
    note().begin(how::COMPLETED, entry.fd);
    // SAFETY: the ring is the engine's, and nothing is under way.
    unsafe { write_volatile(&raw mut (*head()).head, read_volatile(&raw const (*head()).tail)) };
    note().arm(id);
    // SAFETY: the calling thread is at the gate.
    held::release(unsafe { thread::current() });
    let r = wait_for(&Call { nr: IO_SUBMIT, args: [COMPLETIONS_BASE, 1, list.as_ptr() as u64, 0, 0, 0] });
    match r {
        1 => Some(result(id)),
        err::EINVAL => None,
        r => Some(r),
    }
}

/// What the request that was just submitted came to: those for which the kernel does not wait by itself are waited for.
fn result(id: u64) -> i64 {
    loop {
        compiler_fence(SeqCst);
        // SAFETY: the ring is the engine's.
        let event = unsafe {
            let (head, tail) = (read_volatile(&raw const (*head()).head), read_volatile(&raw const (*head()).tail));
            (head != tail)
                .then(|| read_volatile((COMPLETIONS_BASE + HEAD_LEN + head as u64 * EVENT_LEN) as *const Event))
        };
        if let Some(event) = event.filter(|event| event.data == id) {
            return settled(event.result);
        }
        let mut taken = Event::default();
        // SAFETY: the kernel writes the event; it is the one.
        if unsafe { syscall!(IO_GETEVENTS, COMPLETIONS_BASE, 1, 1, &raw mut taken, 0) } == 1 && taken.data == id {
            return settled(taken.result);
        }
    }
}

/// What a dead predecessor's call `id` came to. The pages stay in the pipe, for whoever comes after this process if that dies, too.
pub fn completed(e: &mut Engine, id: u64) -> Option<i64> {
    let [kept, from, to] = [OwnFd::CompletionsRead, OwnFd::TransferRead, OwnFd::TransferWrite].map(|fd| e.own_fd(fd));
    transfer::drain(from);
    let mut page = [0u8; PAGE as usize];
    // SAFETY: the numbers are the engine's own; reads land in the buffer.
    unsafe {
        syscall!(nr::FCNTL, to, F_SETPIPE_SZ, COMPLETIONS_LEN);
        syscall!(TEE, kept, to, COMPLETIONS_LEN, NONBLOCK);
        let mut next = || syscall!(nr::READ, from, page.as_mut_ptr(), PAGE) == PAGE as i64;
        if !next() {
            return None;
        }
    }
    // SAFETY: the page is longer than the head, of which any bytes are one.
    let head = unsafe { page.as_ptr().cast::<Head>().read_unaligned() };
    let found = head.is_whole().then(|| last(&head, from, &mut page)).flatten();
    transfer::drain(from);
    // SAFETY: the number is the engine's own.
    unsafe { syscall!(nr::FCNTL, to, F_SETPIPE_SZ, transfer::MOST) };
    found.filter(|event| event.data == id).map(|event| settled(event.result))
}

/// The last event that the kernel put into a ring of which `page` is the first, and whose others come from `fd`.
fn last(head: &Head, fd: i32, page: &mut [u8; PAGE as usize]) -> Option<Event> {
    if head.head == head.tail {
        return None;
    }
    let place = (head.tail + head.size - 1) % head.size;
    let at = HEAD_LEN + place as u64 * EVENT_LEN;
    for _ in 0..at / PAGE {
        // SAFETY: reads into the buffer.
        if unsafe { syscall!(nr::READ, fd, page.as_mut_ptr(), PAGE) } != PAGE as i64 {
            return None;
        }
    }
    // SAFETY: events are aligned to their length, and so do not cross a page's end.
    Some(unsafe { page.as_ptr().add((at % PAGE) as usize).cast::<Event>().read_unaligned() })
}
