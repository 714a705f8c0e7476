//! What the kernel schedules a thread by: policy, niceness, processors, I/O priority, timer slack. Each thread has its own, and a
//! thread that is made in a restore those of its maker.
//!
//! As long as no thread of several has changed any, all have what the anchor has inherited. From the first change on what each
//! thread has lies in its page of the store, beside its context, and a restored thread sets it for itself, as far as the kernel
//! lets it. So it is with what no clone inherits (SCHED_RESET_ON_FORK).

use crate::call_filters;
use crate::control::degrade;
use crate::sys::{err, nr, syscall};
use crate::thread::{self, Thread};
use crate::world;
use outlast_filter::needs::wish;
use outlast_image::degradation::Degradation;

/// `sched_setattr` and its kind, by number.
const GETATTR: u64 = 315;
const SETATTR: u64 = 314;
const GETAFFINITY: u64 = 204;
const SETAFFINITY: u64 = 203;
const IOPRIO_GET: u64 = 252;
const IOPRIO_SET: u64 = 251;
const IOPRIO_WHO_PROCESS: u64 = 1;
const GETPRIORITY: u64 = 140;
const PRIO_PROCESS: u64 = 0;
const PR_GET_TIMERSLACK: u64 = 30;
const PR_SET_TIMERSLACK: u64 = 29;

/// Bytes of a `struct sched_attr` with utilisation clamps, and of a mask of 1024 processors.
const ATTR: usize = 56;
const MASK: usize = 128;

/// In a thread's page of the store.
#[repr(C)]
#[derive(Clone, Copy, Default, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Scheduling {
    /// Not 0: the rest counts.
    known: u64,
    attr: [u64; ATTR / 8],
    affinity: [u64; MASK / 8],
    /// Bytes of the mask that the kernel gave.
    affinity_len: u64,
    ioprio: u64,
    /// Nanoseconds; 0: not known.
    slack: u64,
}

/// A thread has changed something: notes what each has now. The caller has the lock.
pub fn note_all(own: &mut Thread) {
    // SAFETY: prctl only asks.
    own.page.scheduling.slack = unsafe { syscall!(nr::PRCTL, PR_GET_TIMERSLACK) }.max(0) as u64;
    let place = own.place;
    // Its id as the kernel knows it is not kept where it is alone.
    note(own, 0);
    world::each(|other| {
        if other != place {
            // SAFETY: what lies there of its scheduling only holders of the lock touch.
            let other = unsafe { thread::at(other) };
            note(other, other.real_tid);
        }
    });
}

/// The only thread may have changed something: the anchor inherits it, unless a clone is to be without it. What was noted once is noted
/// again.
pub fn note_if_not_inherited(own: &mut Thread) {
    if own.page.scheduling.known != 0 || is_reset_on_fork() {
        note_all(own);
    }
}

/// SCHED_FIFO, SCHED_RR or SCHED_DEADLINE.
fn is_realtime(attr: &[u64]) -> bool {
    matches!(attr[0] >> 32, 1 | 2 | 6)
}

fn is_reset_on_fork() -> bool {
    const SCHED_FLAG_RESET_ON_FORK: u64 = 1;
    let mut attr = [0u64; ATTR / 8];
    // SAFETY: the kernel writes no more than the length says.
    let r = unsafe { syscall!(GETATTR, 0, attr.as_mut_ptr(), ATTR, 0) };
    !err::is(r) && attr[1] & SCHED_FLAG_RESET_ON_FORK != 0
}

/// A thread is made: it has what its maker has, or what the kernel makes of that.
pub fn inherit(child: &mut Thread, maker: &Thread) {
    child.page.scheduling = maker.page.scheduling;
}

/// The same, once the kernel has made it.
pub fn inherited(child: &mut Thread) {
    if child.page.scheduling.known != 0 {
        note(child, child.real_tid);
    }
}

/// The running thread is the first one of a child that a fork has made.
pub fn born(t: &mut Thread) {
    if t.page.scheduling.known != 0 {
        note(t, 0);
    }
}

/// `tid`: its id as the kernel knows it; 0: it is the running thread.
fn note(t: &mut Thread, tid: u32) {
    let s = &mut t.page.scheduling;
    // SAFETY: the kernel writes no more than the lengths say.
    unsafe {
        let attr = syscall!(GETATTR, tid, s.attr.as_mut_ptr(), ATTR, 0);
        let len = syscall!(GETAFFINITY, tid, MASK, s.affinity.as_mut_ptr());
        s.affinity_len = len.max(0) as u64;
        s.ioprio = syscall!(IOPRIO_GET, IOPRIO_WHO_PROCESS, tid).max(0) as u64;
        s.known = u64::from(!err::is(attr));
        // The attributes have no niceness where the policy makes no use of it, and yet it is there.
        if is_realtime(&s.attr) && call_filters::permit(wish::GETPRIORITY) {
            let priority = syscall!(GETPRIORITY, PRIO_PROCESS, tid);
            s.attr[2] = s.attr[2] & !0xffff_ffff | u64::from((20 - priority.clamp(1, 40)) as i32 as u32);
        }
    }
    t.is_fresh = true;
}

/// Gives the running thread, which is restored, what the commit says.
pub fn restore(t: &Thread) {
    let s = &t.page.scheduling;
    if s.known == 0 {
        return;
    }
    if is_realtime(&s.attr) && s.attr[2] as u32 != 0 {
        // As the policy that has a niceness, first.
        let mut ordinary = s.attr;
        (ordinary[0], ordinary[2]) = (s.attr[0] & 0xffff_ffff, s.attr[2] & 0xffff_ffff);
        // SAFETY: as below. Whether it was refused tells what follows.
        unsafe { syscall!(SETATTR, 0, ordinary.as_ptr(), 0) };
    }
    // SAFETY: the kernel reads no more than the lengths say, and checks what it may grant.
    let refused = unsafe {
        if s.slack != 0 {
            syscall!(nr::PRCTL, PR_SET_TIMERSLACK, s.slack);
        }
        [
            syscall!(SETATTR, 0, s.attr.as_ptr(), 0),
            syscall!(SETAFFINITY, 0, s.affinity_len.min(MASK as u64), s.affinity.as_ptr()),
            syscall!(IOPRIO_SET, IOPRIO_WHO_PROCESS, 0, s.ioprio),
        ]
    };
    if refused.into_iter().any(err::is) {
        degrade(Degradation::KernelObject);
    }
}
