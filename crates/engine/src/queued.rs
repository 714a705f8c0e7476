//! Signals that the program sent to itself and has not taken yet, in their order and with their values: the kernel's own
//! queue dies with the process.

use crate::control::{control, degrade};
use crate::mutant::without;
use crate::signals::{self, bit};
use crate::sys::{err, nr, syscall};
use crate::thread::Thread;
use core::sync::atomic::Ordering::Relaxed;
use outlast_image::degradation::Degradation;
use outlast_image::kernel::SignalAction;
use outlast_image::mutant::Mutant;

/// `struct siginfo`: signal and error number, code, sender, value.
pub type Info = [u64; 16];

/// How many are kept.
const MOST: usize = 128;
/// Signals from here on queue, those below are pending once.
const REALTIME: i32 = 32;
/// `si_code` of what tgkill sends.
const SI_TKILL: i32 = -6;
/// In the place of a thread's place: whichever thread has it unblocked.
pub const ANY: u64 = u64::MAX;

/// A signal and the place of the thread that it is for.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct Entry {
    info: Info,
    place: u64,
}

impl Entry {
    fn signal(&self) -> i32 {
        signal_of(&self.info)
    }
}

pub struct Queue {
    entries: [Entry; MOST],
    count: usize,
    /// Changed since the last commit.
    pub dirty: bool,
}

pub fn signal_of(info: &Info) -> i32 {
    info[0] as i32
}

fn is_same(a: &Info, b: &Info) -> bool {
    signal_of(a) == signal_of(b) && (signal_of(a) < REALTIME || a[3] == b[3])
}

impl Queue {
    pub const fn new() -> Queue {
        Queue { entries: [Entry { info: [0; 16], place: ANY }; MOST], count: 0, dirty: false }
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn waiting(&self) -> &[Entry] {
        &self.entries[..self.count]
    }

    /// Does any thread have it before it?
    pub fn has(&self, sig: i32) -> bool {
        self.waiting().iter().any(|e| e.signal() == sig)
    }

    /// The program sent it, and it may have to wait.
    pub fn push(&mut self, info: &Info, place: u64) {
        let sig = signal_of(info);
        if sig < REALTIME && self.waiting().iter().any(|e| e.signal() == sig && e.place == place) {
            return;
        }
        if self.count == MOST {
            degrade(Degradation::SignalLost);
            return;
        }
        self.entries[self.count] = Entry { info: *info, place };
        self.count += 1;
        self.dirty = true;
    }

    /// The thread with this place took it.
    pub fn take(&mut self, info: &Info, place: u32) {
        let of = |place: u64| self.waiting().iter().position(|e| e.place == place && is_same(&e.info, info));
        if let Some(i) = of(place as u64).or_else(|| of(ANY)) {
            self.remove(i);
        }
    }

    fn remove(&mut self, i: usize) {
        self.entries.copy_within(i + 1..self.count, i);
        self.count -= 1;
        self.dirty = true;
    }

    /// The program took them from a signalfd: `struct signalfd_siginfo`, one after the other.
    pub fn take_records(&mut self, bytes: &[u8], place: u32) {
        for record in bytes.chunks_exact(128) {
            let word = |at: usize| u64::from_le_bytes(record[at..at + 8].try_into().unwrap_or([0; 8]));
            let mut info = [0; 16];
            (info[0], info[3]) = (word(0) & 0xffff_ffff, word(48));
            self.take(&info, place);
        }
    }

    /// Gives the kernel back a signal that it had handed to the thread `t`, which has every signal blocked: before all of the
    /// same kind that came later.
    pub fn put_back(&self, info: &Info, t: &Thread) {
        let sig = signal_of(info);
        let (set, now) = (bit(sig), [0u64; 2]);
        let (mut later, mut count) = ([[0u64; 16]; MOST], 0);
        while sig >= REALTIME && count < MOST {
            // SAFETY: takes a pending signal of this thread or process, without waiting.
            let r =
                unsafe { syscall!(nr::RT_SIGTIMEDWAIT, &raw const set, later[count].as_mut_ptr(), now.as_ptr(), 8) };
            if err::is(r) {
                break;
            }
            count += 1;
        }
        for info in core::iter::once(info).chain(&later[..count]) {
            let is_threads = self.waiting().iter().any(|e| e.place == t.place as u64 && is_same(&e.info, info));
            send_to(info, is_threads || info[1] as i32 == SI_TKILL);
        }
    }

    /// What the kernel has thrown away: signals that are neither blocked nor handled. `mask` tells what the thread with a
    /// place has blocked, or all threads; `None` if it is gone.
    pub fn settle(&mut self, mask: impl Fn(u64) -> Option<u64>, actions: &[SignalAction]) {
        let mut i = 0;
        while i < self.count {
            let Entry { place, .. } = self.entries[i];
            let sig = self.entries[i].signal();
            let blocked = mask(place).map(|mask| mask & bit(sig) != 0);
            match blocked {
                Some(blocked) if blocked || actions[sig as usize].handler > 1 => i += 1,
                _ => self.remove(i),
            }
        }
    }

    /// The object of a commit.
    pub fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(self.waiting())
    }

    /// Takes what a commit held. The bytes may be anything.
    pub fn load(&mut self, bytes: &[u8]) {
        self.count = 0;
        for entry in bytes.chunks_exact(core::mem::size_of::<Entry>()).take(MOST) {
            let entry: Entry = bytemuck::pod_read_unaligned(entry);
            if (1..64).contains(&entry.signal()) {
                self.entries[self.count] = entry;
                self.count += 1;
            }
        }
        self.dirty = false;
        let sent = self.waiting().iter().fold(0, |mask, e| mask | bit(e.signal()));
        control().sent.store(sent, Relaxed);
    }

    /// Sends those of the first thread, and of whichever takes them, again, to a process that has every signal blocked. One
    /// that was rolled back in place may still have some of them, which go first, and `stale` ones that it sent after the commit,
    /// and will send again.
    pub fn send_again(&self, stale: impl Fn(&Info) -> bool, any_stale: bool) {
        if self.is_empty() && !any_stale {
            return;
        }
        let (mut others, mut count) = ([[0u64; 16]; MOST], 0);
        let (all, now) = (!signals::OWNED, [0u64; 2]);
        loop {
            let mut info: Info = [0; 16];
            // SAFETY: takes a pending signal of this process, without waiting.
            let r = unsafe { syscall!(nr::RT_SIGTIMEDWAIT, &raw const all, info.as_mut_ptr(), now.as_ptr(), 8) };
            if err::is(r) {
                break;
            }
            if !self.waiting().iter().any(|e| is_same(&e.info, &info)) && !stale(&info) && count < MOST {
                others[count] = info;
                count += 1;
            }
        }
        let own = self.waiting().iter().filter(|e| matches!(e.place, 0 | ANY)).map(|e| &e.info);
        own.chain(&others[..count]).for_each(send);
    }

    /// Sends those of the running thread again, which is not the first and has every signal blocked. Nobody else may pretend
    /// that they came from tgkill.
    pub fn send_again_to(&self, t: &Thread) {
        if without(Mutant::ThreadSignals) {
            return;
        }
        for e in self.waiting().iter().filter(|e| e.place == t.place as u64) {
            send_to(&e.info, true);
        }
    }
}

/// Sends a signal to this process, as if it came from where `info` says: to the thread, if that is how it was sent, else to
/// the process. The kernel hands out those of the thread first.
pub fn send(info: &Info) {
    send_to(info, info[1] as i32 == SI_TKILL);
}

/// Sends a signal to the running thread, or to the process.
fn send_to(info: &Info, to_thread: bool) {
    // SAFETY: a signal to this very process; the information lies in memory for the length of the call.
    unsafe {
        let (pid, tid) = (syscall!(nr::GETPID), syscall!(nr::GETTID));
        if to_thread {
            syscall!(nr::RT_TGSIGQUEUEINFO, pid, tid, signal_of(info), info.as_ptr());
        } else {
            syscall!(nr::RT_SIGQUEUEINFO, pid, signal_of(info), info.as_ptr());
        }
    }
}
