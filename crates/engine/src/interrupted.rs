//! What becomes of a call that a signal ended, once the signal's handler is done.

use crate::frame::SA_RESTART;
use crate::signals::{bit, SIGKILL, SIGSTOP};
use crate::sys::{err, nr};
use crate::thread::Thread;
use crate::user;
use outlast_image::context::Registers;
use outlast_image::kernel::SignalAction;

/// Changes `regs`, to which the handler of `sig` will return, as the kernel does it, and the mask under which the handler
/// starts.
pub fn settle(t: &mut Thread, regs: &mut Registers, sig: i32, action: &SignalAction) {
    if t.interrupted != 0 && regs.rax as i64 == err::EINTR {
        match own_mask(t.call, regs) {
            // Others that the call's mask lets through follow at once; the handler returns to the mask from before.
            Some(mask) if mask & bit(sig) == 0 => t.mask = mask & !(bit(SIGKILL) | bit(SIGSTOP)),
            // It came before the call, which begins now.
            Some(_) => issue_again(t, regs),
            None if action.flags & SA_RESTART != 0 && crate::dispatch::restarts(t.call) => issue_again(t, regs),
            None => {}
        }
    }
    t.interrupted = 0;
}

/// The mask that the call brings for as long as it waits.
fn own_mask(call: u64, regs: &Registers) -> Option<u64> {
    let at = match call {
        nr::RT_SIGSUSPEND => regs.rdi,
        nr::PPOLL => regs.r10,
        nr::EPOLL_PWAIT | nr::EPOLL_PWAIT2 => regs.r8,
        nr::PSELECT6 => user::read::<u64>(regs.r9)?,
        _ => 0,
    };
    if at == 0 {
        return None;
    }
    user::read(at)
}

/// The program makes its call once more.
pub fn issue_again(t: &mut Thread, regs: &mut Registers) {
    regs.rip -= 2;
    regs.rax = t.call;
    t.interrupted = 0;
}
