//! The session file, mapped: control page, arguments of the injection, ring of events.
//!
//! The program can write all of it. A process id read from it must be proved to be one of ours before it is used.

use outlast_image::children::{self, add_usage, Child, Usage};
use outlast_image::control::{Control, MAGIC};
use outlast_image::event::{Event, EVENTS};
use outlast_image::history;
use outlast_image::inject::{option, InjectArgs, ThreadArgs};
use outlast_image::layout::{session, PAGE, THREADS};
use outlast_image::successor::Successor;
use rustix::fs::{fallocate, FallocateFlags};
use rustix::io::{pread, pwrite, Errno};
use rustix::mm::{mmap, munmap, MapFlags, ProtFlags};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// The part of the session that the supervisor looks at: everything before the bounce buffer.
const MAPPED: usize = session::BOUNCE as usize;
/// The table of its children.
const CHILDREN: (u64, usize) = (session::CHILDREN, children::LEN as usize);

/// A mapped session file.
pub struct Session {
    file: OwnedFd,
    base: NonNull<u8>,
    children: NonNull<u8>,
}

// SAFETY: the mapping is shared memory that other processes change at any time anyway; all access goes through atomics
// or copies of plain data.
unsafe impl Send for Session {}
// SAFETY: as above.
unsafe impl Sync for Session {}

impl Session {
    /// Maps a session file, which must be at least [`outlast_image::layout::SESSION_LEN`] long.
    pub fn map(file: OwnedFd) -> Result<Self, Errno> {
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let base = unsafe { mmap(std::ptr::null_mut(), MAPPED, prot, MapFlags::SHARED, &file, 0) }?;
        let base = NonNull::new(base.cast()).ok_or(Errno::FAULT)?;
        // SAFETY: as above.
        let children = unsafe { mmap(std::ptr::null_mut(), CHILDREN.1, prot, MapFlags::SHARED, &file, CHILDREN.0) }?;
        let children = NonNull::new(children.cast()).ok_or(Errno::FAULT)?;
        Ok(Self { file, base, children })
    }

    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    pub fn control(&self) -> &Control {
        // SAFETY: the mapping is page aligned, lives as long as `self`, and Control consists of atomics only.
        unsafe { self.base.add(session::CONTROL as usize).cast().as_ref() }
    }

    /// Its places for children, as many as have ever been used.
    pub fn children(&self) -> &[Child] {
        let used = self.control().children_used.load(Acquire) as usize;
        // SAFETY: the mapping is page aligned, lives as long as `self`, and has room for all; a place consists of atomics.
        unsafe { std::slice::from_raw_parts(self.children.cast().as_ptr(), used.min(children::CHILDREN)) }
    }

    /// What the program's children have used whose status it has taken.
    pub fn children_usage(&self) -> Usage {
        let mut sum = self.control().children_usage.each_ref().map(|word| word.load(Acquire));
        let taken = self.children().iter().filter(|child| child.state.load(Acquire) == children::state::TAKEN);
        taken.for_each(|child| add_usage(&mut sum, &child.usage()));
        sum
    }

    /// Parent and children of an image of the program are those of the one that it has become.
    pub fn take_children_of(&self, previous: &Session) {
        self.control().parent.store(previous.control().parent.load(Acquire), Release);
        let signal = previous.control().death_signal.load(Acquire);
        self.control().death_signal.store(signal, Release);
        self.control().own_session.store(previous.control().own_session.load(Acquire), Release);
        let used = previous.children_usage();
        self.control().children_usage.iter().zip(used).for_each(|(word, value)| word.store(value, Release));
        let count = previous.control().children_used.load(Acquire);
        if count == 0 {
            return;
        }
        let len = std::mem::size_of::<Child>() * (count as usize).min(children::CHILDREN);
        // SAFETY: both mappings have room for so much; nobody writes there meanwhile but the kernel, to births that are noted already.
        unsafe { std::ptr::copy_nonoverlapping(previous.children.as_ptr(), self.children.as_ptr(), len) };
        self.control().children_used.store(count, Release);
        self.children().iter().filter(|child| child.state.load(Acquire) == children::state::TAKEN).for_each(|child| {
            child.state.store(children::state::FREE, Release);
        });
    }

    /// Marks a fresh session as one.
    pub fn format(&self) {
        self.control().magic.store(MAGIC, Release);
    }

    pub fn is_formatted(&self) -> bool {
        self.control().magic.load(Acquire) == MAGIC
    }

    /// One that no engine uses yet.
    #[cfg(test)]
    pub fn empty() -> Self {
        let file = rustix::fs::memfd_create(c"session", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        rustix::fs::ftruncate(&file, outlast_image::layout::SESSION_LEN).unwrap();
        Self::map(file).unwrap()
    }

    /// Writes what the engine reads when it starts.
    pub fn set_inject_args(&self, args: &InjectArgs) {
        // SAFETY: inside the mapping and aligned; no engine runs yet that could read it at the same time.
        unsafe { self.base.add(session::INJECT as usize).cast::<InjectArgs>().as_ptr().write_volatile(*args) }
    }

    /// Writes what the engine is told of the threads, besides the first, of a program that is attached to.
    pub fn set_thread_args(&self, args: &[ThreadArgs]) -> Result<(), Errno> {
        match pwrite(&self.file, bytemuck::cast_slice(args), session::BOUNCE)? {
            n if n == std::mem::size_of_val(args) => Ok(()),
            _ => Err(Errno::NOSPC),
        }
    }

    /// What it was told of that.
    pub fn ways(&self) -> (u64, u64, u32) {
        let args = self.inject_args();
        (args.options & option::WAYS, args.interval_ns, args.retries)
    }

    /// Writes what the engine may be told otherwise while it runs: bits of [`option::WAYS`], the interval, the attempts. What was meant
    /// is written down elsewhere; who reads it half is told once more.
    pub fn set_ways(&self, (bits, interval_ns, retries): (u64, u64, u32)) {
        // SAFETY: inside the mapping and aligned; each is an integer that is written whole.
        unsafe {
            let args = self.base.add(session::INJECT as usize).cast::<InjectArgs>().as_ptr();
            let options = (&raw const (*args).options).read_volatile();
            (&raw mut (*args).options).write_volatile(options & !option::WAYS | bits);
            (&raw mut (*args).interval_ns).write_volatile(interval_ns);
            (&raw mut (*args).retries).write_volatile(retries);
        }
    }

    pub fn inject_args(&self) -> InjectArgs {
        // SAFETY: inside the mapping and aligned; every bit pattern is a valid InjectArgs.
        unsafe { self.base.add(session::INJECT as usize).cast::<InjectArgs>().as_ptr().read_volatile() }
    }

    /// Writes what the anchor executes when there is no supervisor any more.
    pub fn set_successor(&self, successor: &Successor) {
        // SAFETY: inside the mapping and aligned; who reads it meanwhile executes nothing, or something torn that the
        // kernel refuses.
        unsafe { self.base.add(session::SUCCESSOR as usize).cast::<Successor>().as_ptr().write_volatile(*successor) }
    }

    /// What an image of the program knows of its filters of system calls goes to the one that it has become.
    pub fn take_filters_of(&self, previous: &Session) -> Result<(), Errno> {
        let mut bytes = vec![0; session::FILTERS_LEN as usize];
        let len = pread(&previous.file, &mut bytes[..], session::FILTERS)?;
        // Most programs have none, and a file that holds nothing there takes no room.
        if bytes[..len].iter().any(|byte| *byte != 0) {
            pwrite(&self.file, &bytes[..len], session::FILTERS)?;
        }
        Ok(())
    }

    /// Tells the engine of filters: what [`take_filters_of`](Self::take_filters_of) would bring.
    pub fn set_filters(&self, told: &[u64]) -> Result<(), Errno> {
        let bytes: &[u8] = bytemuck::cast_slice(told);
        match pwrite(&self.file, bytes, session::FILTERS)? {
            n if n == bytes.len() => Ok(()),
            _ => Err(Errno::NOSPC),
        }
    }

    /// Has it been told of any?
    pub fn tells_of_filters(&self) -> bool {
        let mut count = [0; 8];
        pread(&self.file, &mut count[..], session::FILTERS).is_ok() && count != [0; 8]
    }

    /// Do the filters of the program's, if it has any, let it connect to us?
    pub fn may_connect(&self) -> bool {
        // Not by the mapping: a look there would give it room.
        let mut head = [0u64; 2];
        let read = pread(&self.file, bytemuck::bytes_of_mut(&mut head), session::FILTERS);
        let [count, may_connect] = head;
        read.is_ok() && (count == 0 || may_connect != 0)
    }

    /// Events written since `*seen` of them had been; those overwritten meanwhile are left out.
    pub fn events_since(&self, seen: &mut u32) -> Vec<Event> {
        let written = self.control().events.load(Acquire);
        let count = written.wrapping_sub(*seen).min(EVENTS as u32);
        let first = written.wrapping_sub(count);
        *seen = written;
        (0..count).map(|i| self.event(first.wrapping_add(i) as usize % EVENTS)).collect()
    }

    fn event(&self, slot: usize) -> Event {
        let at = session::EVENTS as usize + slot * std::mem::size_of::<Event>();
        // SAFETY: slot < EVENTS, so the entry lies inside the mapping, aligned; every bit pattern is a valid Event.
        unsafe { self.base.add(at).cast::<Event>().as_ptr().read_volatile() }
    }

    /// Forgets what the threads of a dead process had in hand.
    pub fn clear_signals_in_hand(&self) {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let len = THREADS as u64 * session::IN_HAND_LEN;
        // On a tmpfs, which every session is on, it cannot fail; a signal that is left is at worst delivered once more.
        let _ = fallocate(&self.file, flags, session::IN_HAND, len);
    }

    /// Makes room for what the program reads and sends; false: there is none.
    pub fn has_room_for_history(&self) -> bool {
        fallocate(&self.file, FallocateFlags::empty(), session::HISTORY, PAGE + history::LEN).is_ok()
    }

    /// Whether the engine has taken a commit that a recovery could start from.
    pub fn has_commit(&self) -> bool {
        self.control().commits.load(Relaxed) > 0
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `map` with this length, and borrows of it end with `self`.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast(), MAPPED) };
        debug_assert!(unmapped.is_ok());
        // SAFETY: as above.
        let unmapped = unsafe { munmap(self.children.as_ptr().cast(), CHILDREN.1) };
        debug_assert!(unmapped.is_ok());
    }
}
