//! What becomes of a call that a signal ended, once the signal's handler is done.

use crate::countdown;
use crate::dispatch::Call;
use crate::frame::SA_RESTART;
use crate::signals::{bit, SIGKILL, SIGSTOP};
use crate::sys::{err, nr, syscall};
use crate::thread::Thread;
use crate::user;
use outlast_calls::{interrupted, Interrupted};
use outlast_image::context::Registers;
use outlast_image::kernel::SignalAction;

const AT_FDCWD: i64 = -100;
const S_IFMT: u32 = 0o170000;
const S_IFREG: u32 = 0o100000;
const S_IFDIR: u32 = 0o040000;
const S_IFBLK: u32 = 0o060000;

/// Changes `regs`, to which the handler of `sig` will return, as the kernel does it, and the mask under which the handler
/// starts.
pub fn settle(t: &mut Thread, regs: &mut Registers, sig: i32, action: &SignalAction) {
    let unbegun = core::mem::take(&mut t.unbegun) != 0;
    if t.interrupted != 0 && regs.rax as i64 == err::EINTR {
        match own_mask(t.call, regs) {
            // As if it had come before the call.
            None if unbegun => issue_again(t, regs),
            // Others that the call's mask lets through follow at once; the handler returns to the mask from before.
            Some(mask) if mask & bit(sig) == 0 => t.mask = mask & !(bit(SIGKILL) | bit(SIGSTOP)),
            // It came before the call, which begins now.
            Some(_) => issue_again(t, regs),
            None if goes_on(&Call::made(t.call, regs), action.flags & SA_RESTART != 0) => issue_again(t, regs),
            None => {}
        }
    }
    t.interrupted = 0;
}

/// Does the call go on after the handler?
fn goes_on(call: &Call, restart: bool) -> bool {
    match interrupted(call.nr, &call.args) {
        Interrupted::Always => true,
        Interrupted::Restart | Interrupted::RestartUnlessTimeout => restart || !may_wait(call),
        Interrupted::Never | Interrupted::Eintr | Interrupted::Special => false,
    }
}

/// Can a signal reach the call while it waits? As [`Call::waits`], but a look at the file tells what the call alone does not:
/// what is on a disk is opened, read and written to the end.
pub fn may_wait(call: &Call) -> bool {
    let (a, mut stat) = (&call.args, [0u32; 36]);
    // SAFETY: the kernel checks the paths; both calls write 144 bytes.
    let r = unsafe {
        match call.nr {
            nr::OPEN | nr::CREAT => syscall!(nr::NEWFSTATAT, AT_FDCWD, a[0], stat.as_mut_ptr(), 0),
            nr::OPENAT | nr::OPENAT2 => syscall!(nr::NEWFSTATAT, a[0], a[1], stat.as_mut_ptr(), 0),
            nr::READ | nr::READV | nr::PREAD64 | nr::PREADV | nr::PREADV2 => {
                syscall!(nr::FSTAT, a[0], stat.as_mut_ptr())
            }
            nr::WRITE | nr::WRITEV | nr::PWRITE64 | nr::PWRITEV | nr::PWRITEV2 => {
                syscall!(nr::FSTAT, a[0], stat.as_mut_ptr())
            }
            _ => return call.waits(),
        }
    };
    // What is not there is created, or the call fails: at once.
    r == 0 && !matches!(stat[6] & S_IFMT, S_IFREG | S_IFDIR | S_IFBLK)
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
    countdown::cut_short(t, regs);
}
