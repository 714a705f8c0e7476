//! Threads begin: by clone and clone3 of the program, and in a restore.

use super::birth::{CloneArgs, CLONE_CHILD_CLEARTID, CLONE_CHILD_SETTID};
use crate::call_filters;
use crate::commit::commit_before_call;
use crate::control::phase;
use crate::dispatch::{slow_down_waits, Call, Outcome};
use crate::frame;
use crate::in_hand;
use crate::kernel_writes;
use crate::mutant::without;
use crate::native;
use crate::ring::{self, Ring};
use crate::scheduling;
use crate::signals::{self, bit, SIGKILL, SIGSTOP};
use crate::state::{Engine, OwnFd};
use crate::sys::load_call;
use crate::sys::{err, nr, syscall};
use crate::thread::{self, standing, Thread};
use crate::user;
use crate::world;
use core::arch::global_asm;
use core::sync::atomic::Ordering::*;
use outlast_filter::needs::wish;
use outlast_image::degradation::Degradation;
use outlast_image::event::phase as at;
use outlast_image::mutant::Mutant;

pub const CLONE_THREAD: u64 = 0x10000;
const CLONE_SETTLS: u64 = 0x8_0000;
/// What makes a thread: CLONE_VM, FS, FILES, SIGHAND, THREAD and SYSVSEM.
pub const THREAD: u64 = 0x100 | 0x200 | 0x400 | 0x800 | CLONE_THREAD | 0x4_0000;

/// Places in `struct clone_args`.
mod field {
    pub const FLAGS: usize = 0;
    pub const CHILD_TID: usize = 2;
    pub const STACK: usize = 5;
    pub const STACK_SIZE: usize = 6;
    pub const TLS: usize = 7;
    pub const SET_TID: usize = 8;
    pub const SET_TID_SIZE: usize = 9;
}

global_asm!(
    ".section .text.thread_birth,\"ax\"",
    ".globl clone_thread",
    // extern "C" fn clone_thread(args: *const [u64; 7], child: *mut Thread, begin: extern "C" fn(*mut Thread) -> !) -> i64
    // The child begins on the stack that the arguments name, which is the engine's.
    "clone_thread:",
    "push %r12",
    "push %r13",
    "mov %rsi, %r12",
    "mov %rdx, %r13",
    load_call!(),
    "syscall",
    "test %rax, %rax",
    "jz 1f",
    "pop %r13",
    "pop %r12",
    "ret",
    "1:",
    "xor %ebp, %ebp",
    "wrgsbase %r12",
    "mov %r12, %rdi",
    "call *%r13",
    "ud2",
    options(att_syntax),
);

#[expect(improper_ctypes, reason = "the block is passed on by its address")]
extern "C" {
    pub fn clone_thread(
        args: *const [u64; 7],
        child: *mut Thread,
        begin: unsafe extern "C" fn(&mut Thread) -> !,
    ) -> i64;
}

/// The program makes a thread.
pub fn serve(e: &mut Engine, t: &mut Thread, call: &Call, flags: u64, stack: u64) -> Outcome {
    let ready = world::has_several() || begin_several(e, t);
    let Some(place) = world::free_place().filter(|_| ready) else {
        native::suspend(Degradation::Threads);
        t.regs.rip -= 2;
        t.regs.rax = call.nr;
        return Outcome::Registers;
    };
    let Some((tls, tid_address)) = words(call) else { return Outcome::Return(err::EFAULT) };
    // SAFETY: the place is nobody's.
    let child = unsafe { thread::prepare(place) };
    in_hand::let_go(child);
    child.regs = t.regs;
    (child.regs.rax, child.regs.rsp) = (0, if stack == 0 { t.regs.rsp } else { stack });
    child.page.xsave.0 = t.page.xsave.0;
    scheduling::inherit(child, t);
    child.mask = t.mask;
    child.altstack = [0, frame::SS_DISABLE, 0];
    (child.gs_base, child.comm) = (t.gs_base, t.comm);
    child.tid_address = if flags & CLONE_CHILD_CLEARTID != 0 { tid_address } else { 0 };
    child.fs_base = if flags & CLONE_SETTLS != 0 { tls } else { thread::fs_base() };
    (child.robust_list, child.rseq) = ([0; 2], [0; 3]);
    if e.tracker.guards_kernel_writes() {
        kernel_writes::allow(call);
    }
    let r = make(child, call, begin);
    if err::is(r) {
        return Outcome::Return(r);
    }
    (child.tid, child.real_tid) = (r as u32, r as u32);
    if flags & CLONE_CHILD_SETTID != 0 && !without(Mutant::ThreadId) {
        // A bad address is nobody's error, as for the kernel.
        user::write(tid_address, &child.tid);
    }
    scheduling::inherited(child);
    world::settle(place);
    Outcome::Return(r)
}

/// Thread-local storage of the new thread, and where its id is cleared at its end.
fn words(call: &Call) -> Option<(u64, u64)> {
    match call.nr {
        nr::CLONE => Some((call.args[4], call.args[3])),
        _ => {
            let args: [u64; 8] = user::read(call.args[0])?;
            Some((args[field::TLS], args[field::CHILD_TID]))
        }
    }
}

/// From here on there may be several threads. False: there is no room for them, or protection has ended.
fn begin_several(e: &mut Engine, t: &mut Thread) -> bool {
    if world::map_room(false).is_err() || commit_before_call(e) == 0 {
        return false;
    }
    prepare_several(e, t);
    true
}

/// Makes of an engine with one thread one that may have several, for which there is room. What was operated on the ring is
/// settled.
pub fn prepare_several(e: &mut Engine, t: &mut Thread) {
    world::begin(t);
    // SAFETY: gettid has no effect.
    t.real_tid = unsafe { syscall!(nr::GETTID) } as u32;
    t.standing.store(standing::IN_CALL, Release);
    t.is_fresh = true;
    if e.ring.is_of_one_thread() {
        match Ring::set_up_for_all(e.own_fd(OwnFd::Ring)) {
            Ok(ring) => e.ring = ring,
            Err(_) => ring::give_up(e),
        }
    }
    e.tracker.count_all_threads();
    crate::periodic::start_for_all(e);
    slow_down_waits(true);
    crate::rewrite::expect_threads();
}

/// Has the kernel make the thread of `child` as the program's `call` says, but on the engine's stack, and without its id in the
/// program's word: the kernel writes that when the thread has its first turn, and a thread that is made again after a commit before
/// that has none.
fn make(child: &mut Thread, call: &Call, begin: unsafe extern "C" fn(&mut Thread) -> !) -> i64 {
    let mut args = *call;
    let mut room: CloneArgs = [0; 16];
    match call.nr {
        nr::CLONE => (args.args[0], args.args[1]) = (call.args[0] & !CLONE_CHILD_SETTID, child.stack_top),
        _ => {
            let bytes = bytemuck::bytes_of_mut(&mut room);
            let len = call.args[1] as usize;
            if len > bytes.len() {
                return -7;
            }
            if !user::read_bytes(call.args[0], &mut bytes[..len]) {
                return err::EFAULT;
            }
            room[field::FLAGS] &= !CLONE_CHILD_SETTID;
            (room[field::STACK], room[field::STACK_SIZE]) = (child.stack_top - STACK, STACK);
            args.args[0] = room.as_ptr() as u64;
        }
    }
    enter(child, &args, begin)
}

/// What a new thread needs of its stack.
const STACK: u64 = 64 << 10;

fn enter(child: &mut Thread, call: &Call, begin: unsafe extern "C" fn(&mut Thread) -> !) -> i64 {
    let a = call.args;
    child.pending.store(0, Relaxed);
    (child.native, child.interrupted, child.by_trap) = (0, 0, 0);
    (child.is_fresh, child.pins, child.has_lock) = (true, false, false);
    child.standing.store(standing::AT_REST, Release);
    // Whatever comes waits until the thread has a stack for it.
    let args = [call.nr, a[0], a[1], a[2], a[3], a[4], a[5]];
    // SAFETY: the child begins on a stack that is nobody's.
    signals::blocked_in_child(|| unsafe { clone_thread(&args, child, begin) })
}

/// The thread of a restore, whose control block is filled but for what the kernel gives it.
pub fn make_again(child: &mut Thread, begin: unsafe extern "C" fn(&mut Thread) -> !) -> i64 {
    let tid = child.tid as i32;
    let mut args: CloneArgs = [0; 16];
    args[field::FLAGS] = THREAD | CLONE_SETTLS;
    (args[field::STACK], args[field::STACK_SIZE]) = (child.stack_top - STACK, STACK);
    args[field::TLS] = child.fs_base;
    (args[field::SET_TID], args[field::SET_TID_SIZE]) = ((&raw const tid) as u64, 1);
    let call = Call { nr: nr::CLONE3, args: [args.as_ptr() as u64, 88, 0, 0, 0, 0] };
    let r = if call_filters::permit(wish::CLONE3) { enter(child, &call, begin) } else { err::EPERM };
    if !err::is(r) {
        return r;
    }
    // Only with rights over the process-id namespace a thread can have a number of choice.
    let args = [THREAD | CLONE_SETTLS, child.stack_top, 0, 0, child.fs_base, 0];
    enter(child, &Call { nr: nr::CLONE, args }, begin)
}

/// The first code of a new thread: on its own stack of the engine's, every signal blocked.
unsafe extern "C" fn begin(t: &mut Thread) -> ! {
    // Its parent has told it everything when it gives up the lock.
    world::lock(t);
    phase(at::GATE);
    set_up(t);
    world::unlock(t);
    run(t)
}

/// Gives the kernel what every thread of a protected program has.
///
/// # Safety
/// `t` is the running thread's, and GS points at it.
pub unsafe fn set_up(t: &Thread) {
    signals::use_alternate_stack(t);
    if err::is(native::dispatch_on()) {
        crate::control::fail!(0);
    }
}

/// Goes on in the program.
///
/// # Safety
/// As [`set_up`]; the thread has everything, and not the lock.
pub unsafe fn run(t: &mut Thread) -> ! {
    t.mask &= !(bit(SIGKILL) | bit(SIGSTOP));
    world::depart(t);
    signals::set_kernel_mask(t.mask);
    crate::gate::leave()
}
