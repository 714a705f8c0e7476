//! What the engine does when a signal arrives.
//!
//! A handler that finds the program in its own code builds the program's frame at once, exactly as the kernel
//! would have. One that finds it in the engine notes the signal in the thread control block, blocks all further
//! ones in the interrupted context, and the gate delivers on its way out: one slot is enough.

use crate::calls::gs;
use crate::calls::shared_child::{self, SHARED};
use crate::children;
use crate::control::{control, engine_fault, phase};
use crate::delivery::{enter_handler, note_taken, renumber};
use crate::frame::{self, Signal, Ucontext, Vector};
use crate::held;
use crate::in_hand;
use crate::interrupted;
use crate::medium;
use crate::mutant::without;
use crate::native;
use crate::restore::vdso;
use crate::shared_memory;
use crate::signals::{bit, kernel_mask, signal_code, FAULTS, OWNED, SIGBUS, SIGENGINE, SIGSEGV, SIGSYS, SIG_IGN};
use crate::state::engine;
use crate::sys::{err, nr, syscall};
use crate::thread::{self, pending_bit, standing, Thread};
use crate::tracker;
use crate::user;
use crate::world;
use core::arch::global_asm;
use core::sync::atomic::Ordering::*;
use outlast_image::event::phase as at;
use outlast_image::kernel::SignalAction;
use outlast_image::layout::{THREADS, THREADS_BASE, THREAD_LEN};
use outlast_image::mutant::Mutant;

/// `si_code` of what a thread sends to another: how threads of a program stop each other.
const SI_TKILL: i32 = -6;
/// `si_code` of a call that dispatch caught.
const SYS_USER_DISPATCH: i32 = 2;

global_asm!(
    ".section .text.signals,\"ax\"",
    ".globl signal_entry, sigsys_entry, signal_return, knock_overheard",
    // GS is the program's where that has a base of its own: then the stack tells whose signal it is. On another stack it met a thread
    // that the engine has left alone.
    ".macro FIND_BLOCK",
    "cmpl $0, {own_bases}(%rip)",
    "je 8f",
    "movabs ${threads}, %rcx",
    "mov %rsp, %rax",
    "sub %rcx, %rax",
    "cmp ${threads_len}, %rax",
    "jae 6f",
    "and $-{thread_len}, %rax",
    "add %rcx, %rax",
    "jmp 7f",
    "6:",
    "lea {alt_stack}(%rip), %rcx",
    "mov %rsp, %rax",
    "sub %rcx, %rax",
    "cmp ${alt_stack_len}, %rax",
    "ja 9f",
    "lea {main}(%rip), %rax",
    "7:",
    "rdgsbase %rcx",
    "wrgsbase %rax",
    "cmp %rax, %rcx",
    "je 8f",
    // What it has there it may have put there by itself.
    "mov %rcx, %gs:{gs_base}",
    "jmp 8f",
    // It is to have what the program does about the signal.
    "9:",
    "mov %edi, %eax",
    "shl ${action_shift}, %eax",
    "lea {engine}+{actions}(%rip), %rcx",
    "mov (%rcx,%rax), %rax",
    "cmp ${ignored}, %rax",
    "jbe 5f",
    "jmp *%rax",
    "5:",
    "add $8, %rsp",
    "jmp signal_return",
    "8:",
    ".endm",
    "signal_entry:",
    "FIND_BLOCK",
    "sub $8, %rsp",
    "call {on_signal}",
    "add $16, %rsp",
    "signal_return:",
    "mov $15, %eax",
    "syscall",
    "hlt",
    // To `signal_return`. Uses nothing of the engine's: GS may be the program's.
    "knock_overheard:",
    "ret",
    // Syscall User Dispatch: si_code 2. The program goes on in the gate, as if its site had been rewritten.
    "sigsys_entry:",
    "cmpl $2, 8(%rsi)",
    "jne signal_entry",
    "cmpl ${native_way}, {way}(%rip)",
    "je signal_entry",
    "FIND_BLOCK",
    "cmpl ${shared}, %gs:{native}",
    "je signal_entry",
    "mov 168(%rdx), %rax",
    "mov %rax, 152(%rdx)",
    "lea gate_trapped(%rip), %rax",
    "mov %rax, 168(%rdx)",
    "add $8, %rsp",
    "mov $15, %eax",
    "syscall",
    "hlt",
    shared = const SHARED,
    native = const core::mem::offset_of!(Thread, native),
    on_signal = sym on_signal,
    way = sym native::WAY,
    native_way = const native::way::NATIVE,
    own_bases = sym gs::OWN_BASES,
    engine = sym crate::state::ENGINE,
    actions = const core::mem::offset_of!(crate::state::Engine, kernel.actions),
    action_shift = const size_of::<SignalAction>().ilog2(),
    ignored = const SIG_IGN,
    threads = const THREADS_BASE,
    threads_len = const THREADS as u64 * THREAD_LEN,
    thread_len = const THREAD_LEN,
    alt_stack = sym thread::ALT_STACK,
    alt_stack_len = const thread::ALT_STACK_LEN,
    main = sym thread::MAIN,
    gs_base = const core::mem::offset_of!(Thread, gs_base),
    options(att_syntax),
);

extern "C" {
    pub fn signal_entry();
    pub fn sigsys_entry();
    pub fn signal_return();
    pub fn knock_overheard();
    static __text_start: u8;
    static __text_end: u8;
    static fast_check: u8;
    static fast_call: u8;
    static fast_after: u8;
    static fast_exit: u8;
    static exit_window: u8;
    static exit_window_end: u8;
    static call_check: u8;
    static call_syscall: u8;
    static call_abort: u8;
}

macro_rules! address {
    ($symbol:ident) => {
        (&raw const $symbol) as u64
    };
}

/// The engine's text: start and length.
pub fn text() -> (u64, u64) {
    let start = address!(__text_start);
    (start, address!(__text_end) - start)
}

pub fn in_engine(rip: u64) -> bool {
    let (start, len) = text();
    rip.wrapping_sub(start) < len
}

/// Was something written to that is mapped, but not writable?
pub fn is_write_fault(info: &[u64; 16], uc: &Ucontext) -> bool {
    const SEGV_ACCERR: i32 = 2;
    const BY_WRITE: u64 = 2;
    signal_code(info) == SEGV_ACCERR && uc.err & BY_WRITE != 0
}

fn unblock_faults() {
    let faults = FAULTS;
    // SAFETY: the mask lies on the stack for the length of the call.
    unsafe { syscall!(nr::RT_SIGPROCMASK, 1, &raw const faults, 0, 8) };
}

/// Every signal but the dispatch of system calls arrives here, on the engine's alternate stack, all signals blocked.
unsafe extern "C" fn on_signal(sig: i32, info: *mut [u64; 16], uc: *mut Ucontext) {
    answer(sig, &mut *info, &mut *uc);
    if !in_engine((*uc).regs.rip) {
        gs::give_back();
    }
}

unsafe fn answer(sig: i32, info: &mut [u64; 16], uc: &mut Ucontext) {
    let t = thread::current();
    let synchronous = signal_code(info) > 0 && bit(sig) & OWNED != 0;
    if t.native == 0 && sig == children::SIGCHLD {
        children::describe(info);
    }
    if t.native == 0 && !synchronous && sig != SIGENGINE {
        in_hand::hold(t, info);
        children::sending::note_taken(sig);
    }
    if let Some(taken) = control().taken.get(sig as usize) {
        taken.fetch_add(1, Relaxed);
    }
    let rip = uc.regs.rip;
    if sig == SIGSYS && t.native == SHARED {
        return shared_child::redirect(t, uc);
    }
    if sig == SIGSYS && signal_code(info) == SYS_USER_DISPATCH {
        return native::leave_thread(t, uc);
    }
    if engine().tracker.guards_kernel_writes() {
        if sig == SIGSEGV && is_write_fault(info, uc) && write_fault(t, info[2], uc) {
            return;
        }
        // A call with a mask of its own may have blocked them.
        unblock_faults();
    }
    if synchronous && shared_memory::is_on() {
        if t.native != 0 {
            // A child that has all of its parent's memory.
            if sig == SIGSEGV && is_write_fault(info, uc) && shared_memory::open_for_engine(t, info[2]) {
                return;
            }
        } else if shared_memory::answer(engine(), t, sig, info, uc) {
            return;
        }
    }
    // SAFETY: the handler runs on the thread that owns the engine.
    if sig == SIGBUS && synchronous && crate::store_room::takes(unsafe { engine() }, info[2]) {
        crate::store_room::used_up(info[2]);
        return;
    }
    if synchronous {
        if let Some(go_on) = user::fixup(rip) {
            uc.regs.rip = go_on;
            return;
        }
    }
    if sig == SIGENGINE {
        knock(t, info, uc);
        return;
    }
    let mut vector = Vector::Kernel(uc.fpstate, frame::kernel_vector_len(uc.fpstate));
    let mut from_window = false;
    if in_engine(rip) && t.native == 0 {
        if synchronous {
            engine_fault(sig, rip, info[2]);
        }
        if rip >= address!(exit_window) && rip < address!(exit_window_end) {
            // All of the program's state lies in the control block.
            uc.regs = t.regs;
            from_window = true;
        } else if rip >= address!(fast_after) && rip <= address!(fast_exit) {
            let result = uc.regs.rax;
            uc.regs.rip = t.regs.rip;
            if result as i64 == err::EINTR {
                t.interrupted = 1;
            }
        } else {
            look_again(uc);
            t.siginfo = *info;
            if without(Mutant::SignalDeferral) {
                return;
            }
            t.pending.fetch_or(pending_bit::SIGNAL, Release);
            uc.sigmask |= !OWNED;
            return;
        }
    } else {
        t.interrupted = 0;
    }
    if from_window {
        vector = Vector::Saved;
    }
    let shares = world::has_several() && t.native == 0;
    if shares {
        if !from_window {
            keep_context(t, uc);
        }
        world::arrive(t, standing::AT_REST);
        world::lock(t);
    }
    let entered = take_signal(t, sig, info, uc, (vector, from_window));
    if shares {
        t.regs = uc.regs;
        // A commit may have come while it waited for the lock, and another one may come before it is gone.
        t.is_fresh = true;
        if entered {
            frame::reset_vector(&mut t.page.xsave.0);
        }
        world::unlock(t);
        world::depart(t);
    }
}

/// Did the fault come because the page is armed? Then it is not any more. What is known of pages is changed by who has the lock: a thread
/// that must wait for it stands still meanwhile, before the instruction that has faulted.
unsafe fn write_fault(t: &mut Thread, address: u64, uc: &Ucontext) -> bool {
    if !world::has_several() || t.has_lock {
        return tracker::on_write_fault(address);
    }
    let was_attached = tracker::is_attached();
    let must_wait = !world::try_lock(t);
    // In the engine a thread without the lock stands still already.
    let stops = must_wait && !in_engine(uc.regs.rip);
    if stops {
        keep_context(t, uc);
        world::arrive(t, standing::AT_REST);
    }
    if must_wait {
        world::lock(t);
    }
    // If others have ended protection meanwhile there is nothing that is armed.
    let opened = tracker::on_write_fault(address) || was_attached && !tracker::is_attached();
    world::unlock(t);
    if stops {
        world::depart(t);
    }
    opened
}

/// What the program does about a signal that has met it in its own code, or on its way there: `uc` becomes its handler's
/// first context, and the answer is true, or it goes on as it was.
unsafe fn take_signal(
    t: &mut Thread,
    sig: i32,
    info: &mut [u64; 16],
    uc: &mut Ucontext,
    (vector, from_window): (Vector, bool),
) -> bool {
    let synchronous = signal_code(info) > 0 && bit(sig) & OWNED != 0;
    let e = engine();
    let action = e.kernel.actions[sig as usize];
    if action.handler <= SIG_IGN {
        in_hand::let_go(t);
        if action.handler == SIG_IGN && !synchronous {
            resume_window(t, uc, from_window);
            return false;
        }
        crate::failure::fatal(sig, info, uc);
        resume_window(t, uc, from_window);
        return false;
    }
    if t.native == 0 {
        note_taken(t, info);
        renumber(info);
    }
    let mut regs = uc.regs;
    let mask = t.mask;
    interrupted::settle(t, &mut regs, sig, &action);
    let signal = Signal { info, action: &action, fault: [uc.err, uc.trapno, uc.cr2] };
    match frame::build(t, &regs, vector, mask, &signal) {
        Some(new) => {
            uc.regs = new;
            enter_handler(t, sig, &action);
            uc.sigmask = kernel_mask(t.mask);
            reset_vector(uc);
        }
        None => {
            crate::failure::fatal(SIGSEGV, info, uc);
            return false;
        }
    }
    true
}

/// Keeps in the control block what the kernel's frame says of the program.
pub unsafe fn keep_context(t: &mut Thread, uc: &Ucontext) {
    t.regs = uc.regs;
    let len = (frame::kernel_vector_len(uc.fpstate)).min(outlast_image::context::XSAVE_LEN);
    frame::reset_vector(&mut t.page.xsave.0);
    core::ptr::copy_nonoverlapping(uc.fpstate as *const u8, t.page.xsave.0.as_mut_ptr(), len);
}

/// Between a look at `pending` and the call that would wait, the program looks again.
fn look_again(uc: &mut Ucontext) {
    let rip = uc.regs.rip;
    if rip >= address!(fast_check) && rip <= address!(fast_call) {
        uc.regs.rip = address!(fast_check);
    } else if rip >= address!(call_check) && rip <= address!(call_syscall) {
        uc.regs.rip = address!(call_abort);
    }
}

/// The supervisor or the engine's own timer wants attention. In the engine it is noted and served on the way out; in
/// the program's own code it is served here, the program's state being the kernel's frame.
unsafe fn knock(t: &mut Thread, info: &[u64; 16], uc: &mut Ucontext) {
    let rip = uc.regs.rip;
    if t.native != 0 {
        return;
    }
    if shared_memory::is_amid(engine()) {
        return;
    }
    if native::is_everywhere() && !in_engine(rip) {
        return native::leave_by_knock(t, uc);
    }
    let stops = world::has_several() && signal_code(info) == SI_TKILL;
    if rip == address!(fast_exit) && stops {
        // Past the last look at what is pending, and as good as back.
        uc.regs.rip = t.regs.rip;
    } else if in_engine(rip) {
        look_again(uc);
        if rip >= address!(exit_window) && rip < address!(exit_window_end) {
            uc.regs.rip = address!(exit_window);
            uc.regs.rsp = t.stack_top;
        }
        t.pending.fetch_or(if stops { pending_bit::STOP } else { pending_bit::REQUEST }, Release);
        return;
    }
    if medium::is_durable(engine()) && vdso::is_inside(engine(), rip) {
        // Another kernel has other code there. A thread that stops others knocks again.
        if !stops {
            t.pending.fetch_or(pending_bit::REQUEST, Release);
        }
        return;
    }
    if world::has_several() {
        keep_context(t, uc);
        world::arrive(t, standing::AT_REST);
        let mut enters = false;
        if !stops {
            world::lock(t);
            enters = crate::requests::serve();
            t.is_fresh = true;
            // Who has left the program alone has given it back.
            if t.has_lock {
                world::unlock(t);
            }
            if t.native != 0 {
                return native::leave_frame(t, uc);
            }
        }
        world::depart(t);
        if enters {
            begin(t, uc);
        }
        return;
    }
    if crate::periodic::in_critical_section(t, rip) {
        return;
    }
    held::release_on_return(t, uc);
    keep_context(t, uc);
    if crate::requests::serve() {
        begin(t, uc);
    }
    if t.native != 0 {
        return native::leave_frame(t, uc);
    }
    phase(at::PROGRAM);
}

/// The program goes on with a function that the engine has it call.
unsafe fn begin(t: &Thread, uc: &mut Ucontext) {
    uc.regs = t.regs;
    reset_vector(uc);
}

/// What the handler returns to starts with the initial vector state, as the kernel starts handlers.
unsafe fn reset_vector(uc: &mut Ucontext) {
    if uc.fpstate != 0 {
        frame::reset_vector(core::slice::from_raw_parts_mut(uc.fpstate as *mut u8, 576));
    }
}

/// The program was on its way out of the gate and stays there.
fn resume_window(t: &mut Thread, uc: &mut Ucontext, from_window: bool) {
    if from_window {
        uc.regs.rip = address!(exit_window);
        uc.regs.rsp = t.stack_top;
    }
}
