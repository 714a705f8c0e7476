//! The io_uring whose memory lies in the session: a kill cannot separate an operation from its result.
//!
//! SIGKILL lets a system call finish but never returns to user code, so "do it, then note it" loses the note.
//! A completion is written by the kernel as part of the operation, into memory that outlives the process.
//! A restored process reads the completions of its predecessor before it sets up a ring of its own.

use crate::sys::{err, nr, syscall};
use core::ptr::{read_volatile, write_volatile};
use core::sync::atomic::{fence, Ordering::*};
use outlast_image::layout::{session, SESSION_BASE};
use outlast_image::pending::MEMBERS;

mod entry;
mod given_up;
mod kept;
mod memory_limit;

pub use entry::{op, Entry};
pub use given_up::give_up;
pub use kept::{
    forget, is_again, joined_result, keep_joined, keep_result, predecessor_result, progress, save_progress,
};
use memory_limit::Raised;

const ENTRIES: u32 = 8;
const _: () = assert!(MEMBERS <= ENTRIES as usize);
const COMPLETIONS: u32 = 32;
const SETUP_CQSIZE: u32 = 1 << 3;
const SETUP_NO_MMAP: u32 = 1 << 14;
const SETUP_SINGLE_ISSUER: u32 = 1 << 12;
const SETUP_NO_SQARRAY: u32 = 1 << 16;
/// What makes a ring cheaper where the kernel has it (6.6): one task submits, and entries are taken in the order of their
/// slots. Not DEFER_TASKRUN: what a worker did for a task that was killed would reach the completion queue some time after
/// the task is gone.
const CHEAPER: u32 = SETUP_SINGLE_ISSUER | SETUP_NO_SQARRAY;
const ENTER_GETEVENTS: u64 = 1;
const ENTER_REGISTERED_RING: u64 = 1 << 4;
const REGISTER_RING_FDS: u64 = 20;
const UNREGISTER_RING_FDS: u64 = 21;
/// Which of the task's places for registered rings is the engine's: the last, since programs take the first free one.
const REGISTERED: u32 = 15;

const SAVED_LAYOUT: u64 = SESSION_BASE + session::PENDING + 1024;
/// Where the number of the place that was taken last is noted.
const LAST_PLACE: u64 = SESSION_BASE + session::PENDING + 1536;

#[repr(C)]
#[derive(Clone, Copy)]
struct Completion {
    user_data: u64,
    res: i32,
    flags: u32,
}

/// How often more a ring is asked for, a millisecond apart.
const PATIENCE: u32 = 10;

/// `struct io_uring_params`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Params {
    sq_entries: u32,
    cq_entries: u32,
    flags: u32,
    rest: [u32; 7],
    sq_off: [u32; 8],
    sq_addr: u64,
    cq_off: [u32; 8],
    cq_addr: u64,
}

/// Where the ring's words lie, as offsets from its place; saved in the session for a successor.
#[repr(C)]
#[derive(Clone, Copy, Default, bytemuck::Pod, bytemuck::Zeroable)]
struct Layout {
    place: u32,
    sq_head: u32,
    sq_tail: u32,
    sq_mask: u32,
    sq_array: u32,
    cq_head: u32,
    cq_tail: u32,
    cq_mask: u32,
    cqes: u32,
    valid: u32,
}

/// The ring of this process; descriptor 0 stands for none.
pub struct Ring {
    pub fd: i32,
    /// What `io_uring_enter` knows the ring by, and the flag that says so.
    enter: (u64, u64),
    /// Slots are named in an array.
    has_array: bool,
    /// Made for all threads.
    for_all: bool,
    layout: Layout,
    sq_mask: u32,
    cq_mask: u32,
}

/// Address of a place for a ring.
fn place(n: u32) -> u64 {
    SESSION_BASE + session::RINGS + (n % session::RING_PLACES) as u64 * session::RING_PLACE_LEN
}

/// The number of a place that no ring has had for long. It counts as taken before there is a ring: of one whose process died
/// while setting it up the kernel may still write the tail of its completions, long after.
fn take_place() -> u32 {
    // SAFETY: a word of the session, which restoring processes use one after the other.
    unsafe {
        let n = read_volatile(LAST_PLACE as *const u32).wrapping_add(1) % session::RING_PLACES;
        write_volatile(LAST_PLACE as *mut u32, n);
        fence(Release);
        n
    }
}

impl Layout {
    fn word(&self, offset: u32) -> *mut u32 {
        (place(self.place) + offset as u64) as *mut u32
    }

    fn entries(&self) -> *mut Entry {
        (place(self.place) + session::RING_PLACE_LEN / 2) as *mut Entry
    }
}

impl Ring {
    /// No ring: io_uring is forbidden or switched off.
    pub const fn none() -> Ring {
        Ring {
            fd: 0,
            enter: (0, 0),
            has_array: true,
            for_all: false,
            layout: Layout {
                place: 0,
                sq_head: 0,
                sq_tail: 0,
                sq_mask: 0,
                sq_array: 0,
                cq_head: 0,
                cq_tail: 0,
                cq_mask: 0,
                cqes: 0,
                valid: 0,
            },
            sq_mask: 0,
            cq_mask: 0,
        }
    }

    /// Sets up a ring in the session's memory, its descriptor moved to `fd`.
    pub fn set_up(fd: i32) -> Result<Ring, i64> {
        Self::with_patience(fd, CHEAPER)
    }

    /// The same, to be used by all threads of the process, one after the other.
    pub fn set_up_for_all(fd: i32) -> Result<Ring, i64> {
        Ok(Ring { for_all: true, ..Self::with_patience(fd, SETUP_NO_SQARRAY)? })
    }

    /// With `flags`, or without where the kernel does not know them. The rings of the dead count as the user's locked memory for
    /// some milliseconds more.
    fn with_patience(fd: i32, flags: u32) -> Result<Ring, i64> {
        let (mut tries, mut raised) = (0, None);
        loop {
            let ring = Self::with_flags(fd, flags).or_else(|_| Self::with_flags(fd, 0));
            if matches!(ring, Err(err::ENOMEM)) && raised.is_none() {
                raised = Raised::try_now();
                if raised.is_some() {
                    continue;
                }
            }
            match ring {
                Err(err::ENOMEM | err::EAGAIN | err::EINTR) if tries < PATIENCE => tries += 1,
                _ => return ring,
            }
            let pause = [0u64, 1_000_000];
            // SAFETY: the time lies on the stack for the length of the call.
            unsafe { syscall!(nr::NANOSLEEP, pause.as_ptr(), 0) };
        }
    }

    fn with_flags(fd: i32, flags: u32) -> Result<Ring, i64> {
        let n = take_place();
        let mut p = Params {
            flags: SETUP_CQSIZE | SETUP_NO_MMAP | flags,
            cq_entries: COMPLETIONS,
            sq_addr: place(n) + session::RING_PLACE_LEN / 2,
            cq_addr: place(n),
            ..Default::default()
        };
        // SAFETY: the kernel writes the parameters and pins the two ranges of the session.
        unsafe {
            let r = syscall!(nr::IO_URING_SETUP, ENTRIES, &raw mut p);
            if r < 0 {
                return Err(r);
            }
            if r != fd as i64 {
                let d = syscall!(nr::DUP3, r, fd, 0o2000000);
                syscall!(nr::CLOSE, r);
                if d < 0 {
                    return Err(d);
                }
            }
        }
        let layout = Layout {
            place: n,
            sq_head: p.sq_off[0],
            sq_tail: p.sq_off[1],
            sq_mask: p.sq_off[2],
            sq_array: p.sq_off[6],
            cq_head: p.cq_off[0],
            cq_tail: p.cq_off[1],
            cq_mask: p.cq_off[2],
            cqes: p.cq_off[5],
            valid: 1,
        };
        // SAFETY: both lie in the session.
        unsafe {
            write_volatile(SAVED_LAYOUT as *mut Layout, layout);
            Ok(Ring {
                fd,
                enter: if flags & SETUP_SINGLE_ISSUER != 0 { register(fd) } else { (fd as u64, 0) },
                has_array: flags & SETUP_NO_SQARRAY == 0,
                for_all: false,
                layout,
                sq_mask: *layout.word(layout.sq_mask),
                cq_mask: *layout.word(layout.cq_mask),
            })
        }
    }

    /// The ring's descriptor has another number now.
    pub fn renumber(&mut self, fd: i32) {
        if self.available() {
            self.fd = fd;
            if self.enter.1 & ENTER_REGISTERED_RING == 0 {
                self.enter.0 = fd as u64;
            }
        }
    }

    /// Is there one that no other thread can use?
    pub fn is_of_one_thread(&self) -> bool {
        self.available() && !self.for_all
    }

    pub fn available(&self) -> bool {
        self.fd > 0
    }

    /// Submits one entry and waits for its completion. `inline` operations complete within the submission.
    /// Returns the operation's result, or `EINTR` if a signal ended the wait: the entry is then cancelled first.
    #[inline]
    pub fn run(&mut self, entry: &Entry) -> i64 {
        self.run_while(entry, || true)
    }

    /// As `run`, but a signal ends the wait only if the operation `may_wait` without bound.
    #[inline]
    pub fn run_while(&mut self, entry: &Entry, may_wait: impl Fn() -> bool) -> i64 {
        let l = &self.layout;
        // SAFETY: the words lie in the ring's memory; this thread is the only submitter.
        unsafe {
            // The completion of the last operation stays readable until the next one begins.
            write_volatile(l.word(l.cq_head), read_volatile(l.word(l.cq_tail)));
            self.submit(entry);
            // Most complete at once; waiting for them would cost the kernel another look.
            let mut r = self.enter(1, 0, 0);
            loop {
                fence(Acquire);
                if let Some(res) = self.completion(entry.user_data) {
                    return res;
                }
                if err::is(r) && r != err::EINTR {
                    return r;
                }
                if crate::thread::current().pending.load(Acquire) != 0 && may_wait() {
                    return self.cancel(entry.user_data);
                }
                r = self.enter(0, 1, ENTER_GETEVENTS);
            }
        }
    }

    /// Submits entries, none of which waits, and fills in their results, in the same order. Of one that was not made, after an
    /// error, the result stays what it was.
    pub fn run_all(&mut self, entries: &[Entry], results: &mut [i64]) {
        let l = self.layout;
        // SAFETY: as `run_while`.
        unsafe {
            write_volatile(l.word(l.cq_head), read_volatile(l.word(l.cq_tail)));
            entries.iter().for_each(|entry| self.submit(entry));
            let mut left = entries.len() as u32;
            while left > 0 {
                match self.enter(left, 0, 0) {
                    r @ 1.. => left -= left.min(r as u32),
                    err::EINTR => {}
                    _ => {
                        // Not to be made with what is submitted next.
                        write_volatile(l.word(l.sq_tail), read_volatile(l.word(l.sq_head)));
                        break;
                    }
                }
            }
            let submitted = entries.len() - left as usize;
            for (entry, result) in entries[..submitted].iter().zip(results) {
                *result = loop {
                    fence(Acquire);
                    if let Some(found) = self.completion(entry.user_data) {
                        break found;
                    }
                    self.enter(0, 1, ENTER_GETEVENTS);
                };
            }
        }
    }

    #[inline(always)]
    unsafe fn enter(&self, submit: u32, complete: u32, flags: u64) -> i64 {
        let (ring, known) = self.enter;
        syscall!(nr::IO_URING_ENTER, ring, submit, complete, flags | known, 0, 0)
    }

    unsafe fn submit(&mut self, entry: &Entry) {
        let l = &self.layout;
        let tail = read_volatile(l.word(l.sq_tail));
        let slot = tail & self.sq_mask;
        write_volatile(l.entries().add(slot as usize), *entry);
        if self.has_array {
            write_volatile(l.word(l.sq_array).add(slot as usize), slot);
        }
        fence(Release);
        write_volatile(l.word(l.sq_tail), tail.wrapping_add(1));
    }

    unsafe fn cancel(&mut self, user_data: u64) -> i64 {
        let cancel =
            Entry { opcode: op::ASYNC_CANCEL, fd: -1, addr: user_data, user_data: u64::MAX, ..Default::default() };
        self.submit(&cancel);
        let mut r = self.enter(1, 1, ENTER_GETEVENTS);
        loop {
            fence(Acquire);
            if let Some(res) = self.completion(user_data) {
                return if res == err::ECANCELED { err::EINTR } else { res };
            }
            if err::is(r) && r != err::EINTR {
                return r;
            }
            r = self.enter(0, 2, ENTER_GETEVENTS);
        }
    }

    unsafe fn completion(&self, user_data: u64) -> Option<i64> {
        find(&self.layout, self.cq_mask, user_data)
    }
}

/// Registers the ring with the task, which saves a look-up in the descriptor table at each call. What the place holds from
/// before a rollback is let go.
unsafe fn register(fd: i32) -> (u64, u64) {
    let update = [REGISTERED as u64, fd as u64];
    syscall!(nr::IO_URING_REGISTER, fd, UNREGISTER_RING_FDS, update.as_ptr(), 1);
    if syscall!(nr::IO_URING_REGISTER, fd, REGISTER_RING_FDS, update.as_ptr(), 1) == 1 {
        (REGISTERED as u64, ENTER_REGISTERED_RING)
    } else {
        (fd as u64, 0)
    }
}

unsafe fn find(l: &Layout, mask: u32, user_data: u64) -> Option<i64> {
    let (head, tail) = (read_volatile(l.word(l.cq_head)), read_volatile(l.word(l.cq_tail)));
    let mut found = None;
    for i in 0..tail.wrapping_sub(head).min(mask + 1) {
        let slot = (head.wrapping_add(i) & mask) as usize;
        let c = read_volatile((l.word(l.cqes) as *const Completion).add(slot));
        if c.user_data == user_data {
            found = Some(settled(c.res as i64));
        }
    }
    found
}

/// Of an operation that a signal cut short the kernel may say what it translates only at the end of a system call: ERESTARTSYS
/// and its kin.
pub const fn settled(result: i64) -> i64 {
    match result {
        -516..=-512 => err::EINTR,
        _ => result,
    }
}

/// What the ring of the dead predecessor says of an operation.
pub fn completed(user_data: u64) -> Option<i64> {
    // SAFETY: all offsets are checked against the ring's page before use.
    unsafe {
        let l = read_volatile(SAVED_LAYOUT as *const Layout);
        let room = session::RING_PLACE_LEN as u32 / 2;
        let mask = COMPLETIONS - 1;
        let end = l.cqes.checked_add((mask + 1) * core::mem::size_of::<Completion>() as u32)?;
        if l.valid != 1 || end > room || l.cq_head > room - 4 || l.cq_tail > room - 4 {
            return None;
        }
        find(&l, mask, user_data).filter(|r| !is_again(*r))
    }
}
