//! Signals belong to the engine.
//!
//! It installs its own handler for every signal that the program handles and for those that end a program with a
//! core; what these do is in `handlers`. Here is what the kernel is told: actions, masks, the stack.

use crate::frame::{SA_NODEFER, SA_ONSTACK, SA_RESTART, SA_RESTORER, SA_SIGINFO};
use crate::handlers::{knock_overheard, signal_entry, signal_return, sigsys_entry};
use crate::held;
use crate::state::{engine, Engine};
use crate::sys::{nr, syscall};
use crate::thread::{self, Thread};
use outlast_image::kernel::SignalAction;

pub const SIGILL: i32 = 4;
pub const SIGTRAP: i32 = 5;
pub const SIGABRT: i32 = 6;
pub const SIGBUS: i32 = 7;
pub const SIGFPE: i32 = 8;
pub const SIGKILL: i32 = 9;
pub const SIGSEGV: i32 = 11;
pub const SIGPIPE: i32 = 13;
pub const SIGSTOP: i32 = 19;
pub const SIGSYS: i32 = 31;
/// The supervisor's knock.
pub const SIGENGINE: i32 = 64;

pub const SIG_DFL: u64 = 0;
pub const SIG_IGN: u64 = 1;

pub const fn bit(sig: i32) -> u64 {
    1 << (sig - 1)
}

/// Never blocked in the kernel, whatever the program asks for: the engine needs them.
pub const OWNED: u64 =
    bit(SIGSYS) | bit(SIGSEGV) | bit(SIGBUS) | bit(SIGFPE) | bit(SIGILL) | bit(SIGTRAP) | bit(SIGENGINE);

/// Faults that the engine itself takes and survives, in its handlers as well.
pub const FAULTS: u64 = bit(SIGSEGV) | bit(SIGBUS);

/// Signals whose default is to end with a core: these are failures, to be answered by a rollback.
pub const FATAL: u64 =
    bit(SIGSEGV) | bit(SIGBUS) | bit(SIGFPE) | bit(SIGILL) | bit(SIGTRAP) | bit(SIGABRT) | bit(SIGSYS);

/// The mask the kernel gets when the program wants `mask`.
pub const fn kernel_mask(mask: u64) -> u64 {
    mask & !OWNED
}

fn install(sig: i32, handler: u64, flags: u64) -> i64 {
    let nodefer = if FAULTS & bit(sig) != 0 { SA_NODEFER } else { 0 };
    let a = SignalAction {
        handler,
        flags: flags | nodefer | SA_SIGINFO | SA_ONSTACK | SA_RESTORER,
        restorer: signal_return as *const () as u64,
        // A tracker's fault may come while a handler writes to the program's stack.
        mask: !FAULTS,
    };
    // SAFETY: the action lies on the stack for the length of the call.
    unsafe { syscall!(nr::RT_SIGACTION, sig, &raw const a, 0, 8) }
}

/// Has knocks do nothing.
pub fn overhear_knocks() {
    install(SIGENGINE, knock_overheard as *const () as u64, SA_RESTART);
}

/// Has calls that are the kernel's go on after a handler where the program wants that, while the engine's still handles its signals.
pub fn restart_as_wanted(e: &Engine) {
    for sig in (1..=64).filter(|sig| ![SIGSYS, SIGENGINE].contains(sig)) {
        let action = &e.kernel.actions[sig as usize];
        if action.handler > SIG_IGN && action.flags & SA_RESTART != 0 {
            install(sig, signal_entry as *const () as u64, action.flags & 3 | SA_RESTART);
        }
    }
}

/// Installs what the kernel must have so that the program's `action` for `sig` works.
pub fn apply(sig: i32, action: &SignalAction) -> i64 {
    match sig {
        SIGSYS => install(sig, sigsys_entry as *const () as u64, 0),
        SIGENGINE => install(sig, signal_entry as *const () as u64, 0),
        _ if action.handler > SIG_IGN => install(sig, signal_entry as *const () as u64, action.flags & 3),
        _ if FATAL & bit(sig) != 0 && (action.handler == SIG_DFL || OWNED & bit(sig) != 0) => {
            install(sig, signal_entry as *const () as u64, 0)
        }
        // SAFETY: as `install`.
        _ => unsafe { syscall!(nr::RT_SIGACTION, sig, action as *const _, 0, 8) },
    }
}

/// Has the running thread take signals on the engine's stack for it.
pub fn use_alternate_stack(t: &Thread) {
    let (sp, len) = thread::alt_stack(t);
    let stack = [sp, 0, len];
    // SAFETY: the alternate stack is the engine's own memory.
    unsafe { syscall!(nr::SIGALTSTACK, stack.as_ptr(), 0) };
}

/// Installs everything anew: at start and after a restore.
pub fn install_all() {
    // SAFETY: runs on the engine's own stack, single-threaded.
    let e = unsafe { engine() };
    // SAFETY: the running thread's.
    use_alternate_stack(unsafe { thread::current() });
    for sig in 1..=64 {
        let action = e.kernel.actions[sig as usize];
        let needed = action.handler != 0 || action.flags != 0 || (FATAL | OWNED) & bit(sig) != 0;
        if needed && sig != SIGKILL && sig != SIGSTOP {
            apply(sig, &action);
        }
    }
}

/// The mask the kernel gets now when the program wants `mask`.
pub fn kernel_mask_now(mask: u64) -> u64 {
    kernel_mask(if held::is_on() { !0 } else { mask })
}

/// Sets the kernel's mask to what the program wants. No signal may be on its way to the program.
pub fn set_kernel_mask(mask: u64) {
    let m = kernel_mask_now(mask);
    // SAFETY: the mask lies on the stack for the length of the call.
    unsafe { syscall!(nr::RT_SIGPROCMASK, 2, &raw const m, 0, 8) };
}

/// Blocks everything that may be blocked.
pub fn block_all() {
    set_kernel_mask(!0);
}

/// Makes a child with `make`, in which everything stays blocked.
pub fn blocked_in_child(make: impl FnOnce() -> i64) -> i64 {
    let (all, mut before) = (!0u64, 0u64);
    // SAFETY: the masks lie on the stack for the length of the calls.
    unsafe { syscall!(nr::RT_SIGPROCMASK, 2, &raw const all, &raw mut before, 8) };
    let r = make();
    if r != 0 {
        // SAFETY: as above.
        unsafe { syscall!(nr::RT_SIGPROCMASK, 2, &raw const before, 0, 8) };
    }
    r
}

pub fn signal_code(info: &[u64; 16]) -> i32 {
    info[1] as u32 as i32
}
