//! Signals that the program sent to itself and has not taken yet, in their order and with their values: the kernel's own
//! queue dies with the process.

use crate::control::{control, degrade};
use crate::signals::{self, bit};
use crate::sys::{err, nr, syscall};
use core::sync::atomic::Ordering::Relaxed;
use outlast_image::degradation::Degradation;
use outlast_image::kernel::SignalAction;

/// `struct siginfo`: signal and error number, code, sender, value.
pub type Info = [u64; 16];

/// How many are kept.
const MOST: usize = 64;
/// Signals from here on queue, those below are pending once.
const REALTIME: i32 = 32;

pub struct Queue {
    entries: [Info; MOST],
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
        Queue { entries: [[0; 16]; MOST], count: 0, dirty: false }
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn has(&self, sig: i32) -> bool {
        self.entries[..self.count].iter().any(|e| signal_of(e) == sig)
    }

    /// The program sent it and has it blocked.
    pub fn push(&mut self, info: &Info) {
        if signal_of(info) < REALTIME && self.has(signal_of(info)) {
            return;
        }
        if self.count == MOST {
            degrade(Degradation::SignalLost);
            return;
        }
        self.entries[self.count] = *info;
        self.count += 1;
        self.dirty = true;
    }

    /// The program took it; false if it is not one of these.
    pub fn take(&mut self, info: &Info) -> bool {
        let Some(i) = self.entries[..self.count].iter().position(|e| is_same(e, info)) else { return false };
        self.entries.copy_within(i + 1..self.count, i);
        self.count -= 1;
        self.dirty = true;
        true
    }

    /// The program took them from a signalfd: `struct signalfd_siginfo`, one after the other.
    pub fn take_records(&mut self, bytes: &[u8]) {
        for record in bytes.chunks_exact(128) {
            let word = |at: usize| u64::from_le_bytes(record[at..at + 8].try_into().unwrap_or([0; 8]));
            let mut info = [0; 16];
            (info[0], info[3]) = (word(0) & 0xffff_ffff, word(48));
            self.take(&info);
        }
    }

    /// What the kernel has thrown away: signals that are neither blocked nor handled.
    pub fn settle(&mut self, mask: u64, actions: &[SignalAction]) {
        let mut i = 0;
        while i < self.count {
            let sig = signal_of(&self.entries[i]);
            if mask & bit(sig) == 0 && actions[sig as usize].handler <= 1 {
                let info = self.entries[i];
                self.take(&info);
            } else {
                i += 1;
            }
        }
    }

    /// The object of a commit.
    pub fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.entries[..self.count])
    }

    /// Takes what a commit held. The bytes may be anything.
    pub fn load(&mut self, bytes: &[u8]) {
        self.count = 0;
        for entry in bytes.chunks_exact(core::mem::size_of::<Info>()).take(MOST) {
            let info: Info = bytemuck::pod_read_unaligned(entry);
            if (1..64).contains(&signal_of(&info)) {
                self.entries[self.count] = info;
                self.count += 1;
            }
        }
        self.dirty = false;
        let sent = self.entries[..self.count].iter().fold(0, |mask, info| mask | bit(signal_of(info)));
        control().sent.store(sent, Relaxed);
    }

    /// Sends all of them again, to a process that has every signal blocked. One that was rolled back in place may still
    /// have some of them, which go first.
    pub fn send_again(&self) {
        if self.is_empty() {
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
            if !self.entries[..self.count].iter().any(|e| is_same(e, &info)) && count < MOST {
                others[count] = info;
                count += 1;
            }
        }
        self.entries[..self.count].iter().chain(&others[..count]).for_each(send);
    }
}

/// Sends a signal to this process, as if it came from where `info` says: to the thread, if that is how it was sent, else to
/// the process. The kernel hands out those of the thread first.
pub fn send(info: &Info) {
    const SI_TKILL: i32 = -6;
    // SAFETY: a signal to this very process; the information lies in memory for the length of the call.
    unsafe {
        let (pid, tid) = (syscall!(nr::GETPID), syscall!(nr::GETTID));
        if info[1] as i32 == SI_TKILL {
            syscall!(nr::RT_TGSIGQUEUEINFO, pid, tid, signal_of(info), info.as_ptr());
        } else {
            syscall!(nr::RT_SIGQUEUEINFO, pid, signal_of(info), info.as_ptr());
        }
    }
}
