//! Beginning in a program that runs already. What a fresh image has none of, the kernel is asked for, and what the kernel tells
//! nobody but the process itself; all else the supervisor has looked at, and would have refused.

pub mod threads;

use crate::calls::{descriptors, epoll};
use crate::control::control;
use crate::dispatch::dispatch;
use crate::frame::SS_ONSTACK;
use crate::gate;
use crate::scratch;
use crate::state::Engine;
use crate::sys::{err, now_ns, nr, syscall};
use crate::thread::{self, standing, Thread};
use crate::unwritable;
use crate::vm_flags;
use crate::world;
use core::sync::atomic::Ordering::Release;
use outlast_image::inject::ThreadArgs;

const GET_ROBUST_LIST: u64 = 274;
const MEMBARRIER: u64 = 324;
const MEMBARRIER_CMD_GET_REGISTRATIONS: u64 = 1 << 9;
const PR_GET_TID_ADDRESS: u64 = 40;
const PR_GET_DUMPABLE: u64 = 3;
const F_GETOWN: u64 = 9;

/// Fills the control block of the first thread with what the supervisor has seen of it.
pub fn fill_first(e: &Engine, t: &mut Thread) {
    let a = &e.args;
    fill(t, &ThreadArgs { regs: a.regs, mask: a.mask, rseq: a.rseq, waits_in: a.waits_in, tid: 0 });
}

fn fill(t: &mut Thread, args: &ThreadArgs) {
    t.regs = args.regs;
    t.regs.eflags = args.regs.eflags & 0x24_0dd5 | 0x202;
    (t.mask, t.rseq) = (args.mask, args.rseq);
}

/// Reads what the kernel tells of the running thread. The vector state lies where the first instructions have put it.
pub unsafe fn read_thread(t: &mut Thread) {
    t.tid = syscall!(nr::GETTID) as u32;
    t.read_comm();
    let mut stack = [0u64; 3];
    syscall!(nr::SIGALTSTACK, 0, stack.as_mut_ptr());
    t.altstack = [stack[0], stack[1] & 0xffff_ffff & !SS_ONSTACK, stack[2]];
    let mut list = [0u64; 2];
    if syscall!(GET_ROBUST_LIST, 0, &raw mut list[0], &raw mut list[1]) == 0 {
        t.robust_list = list;
    }
    // Of no consequence to the end of a thread that is alone; of several the supervisor has seen that the kernel tells it.
    let mut address = 0u64;
    if syscall!(nr::PRCTL, PR_GET_TID_ADDRESS, &raw mut address) == 0 {
        t.tid_address = address;
    }
}

/// Reads what the kernel keeps of the process, and a fresh image has none of.
pub unsafe fn read_process(e: &mut Engine) {
    e.kernel.undumpable = (syscall!(nr::PRCTL, PR_GET_DUMPABLE) == 0) as u32;
    let registered = syscall!(MEMBARRIER, MEMBARRIER_CMD_GET_REGISTRATIONS, 0, 0);
    // Before Linux 6.3 nobody can tell: to be registered for all costs little, and nobody is refused.
    e.kernel.barriers = if err::is(registered) { ALL_BARRIERS } else { registered as u32 };
}

/// GLOBAL_EXPEDITED, PRIVATE_EXPEDITED, PRIVATE_EXPEDITED_SYNC_CORE and PRIVATE_EXPEDITED_RSEQ, registered.
const ALL_BARRIERS: u32 = 1 << 2 | 1 << 4 | 1 << 6 | 1 << 8;

/// What is advised of its memory; and the kernel writes to a restartable sequence at any time. The tracker has begun.
pub fn read_memory(e: &mut Engine, t: &Thread) {
    e.tracker.pin_sequence(t);
    unwritable::save_all();
    let advice = &mut e.advice;
    vm_flags::each(&mut |start, end, marks| advice.found(start, end, |mark| vm_flags::has(marks, mark)));
}

/// Locks that end with a descriptor, owners that are told of input, and interests of epoll that come once.
pub fn read_descriptors(e: &mut Engine) {
    let end = e.fds.end();
    for fd in 0..end {
        if !e.fds.is_open(fd) {
            continue;
        }
        if e.kernel.locks == 0 && descriptors::shows_lock(fd) {
            e.kernel.locks = 1;
        }
        // SAFETY: asks only.
        let owner = unsafe { syscall!(nr::FCNTL, fd, F_GETOWN) };
        if owner != 0 && !err::is(owner) {
            e.kernel.owners = 1;
        }
        epoll::found(e, fd, scratch::maps_text());
    }
}

/// Leaves for the program, which goes on where it was stopped.
pub unsafe fn go_on(t: &mut Thread, is_protected: bool) -> ! {
    threads::release(is_protected);
    control().t_resumed.store(now_ns(), Release);
    let waits = crate::state::engine().args.waits_in != 0;
    // Nothing has come in between that would have the kernel forget how long the wait still lasts.
    if waits && is_protected {
        t.call = t.regs.rax;
        t.regs.rip += 2;
    } else if waits {
        t.regs.rax = nr::RESTART_SYSCALL;
    }
    t.is_fresh = true;
    let in_call = waits && is_protected;
    // As others may see it from here on.
    t.standing.store(if in_call { standing::IN_CALL } else { standing::AT_REST }, Release);
    world::unlock(t);
    if in_call {
        crate::on_stack(t.stack_top, wait_on);
    }
    world::depart(t);
    gate::leave()
}

/// Goes on with the call that the thread was stopped in.
unsafe extern "C" fn wait_on() -> ! {
    let t = thread::current();
    t.interrupted = 0;
    t.countdown.goes_on_in_kernel = 1;
    t.whole = 1;
    dispatch(t);
    gate::leave()
}
