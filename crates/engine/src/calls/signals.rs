//! Signal state is the engine's: the program sees what it set.

use crate::calls::{groups, own_pidfds};
use crate::children::sending;
use crate::control::{control, phase};
use crate::delivery;
use crate::dispatch::{interruptible, native, visible, visible_by, Call, Outcome};
use crate::frame;
use crate::held;
use crate::numbers;
use crate::queued::{Info, ANY};
use crate::signals::{self, bit, SIGENGINE, SIGKILL, SIGSTOP, SIGSYS};
use crate::state::Engine;
use crate::sys::{err, nr, syscall};
use crate::thread::Thread;
use crate::user;
use crate::world;
use core::sync::atomic::Ordering::{Relaxed, Release};
use outlast_image::event::phase as at;
use outlast_image::kernel::SignalAction;

const GETUID: u64 = 102;
const SIG_BLOCK: u64 = 0;

pub fn serve(e: &mut Engine, t: &mut Thread, call: &Call) -> Outcome {
    let a = call.args;
    if held::is_on() && takes_signals(call) {
        held::release(t);
    }
    Outcome::Return(match call.nr {
        nr::RT_SIGACTION => action(e, call),
        nr::RT_SIGPROCMASK => mask(e, t, a),
        nr::RT_SIGRETURN => {
            let frame = t.regs.rsp;
            match frame::take(t, frame) {
                Some(mask) => {
                    t.mask = mask & !(bit(SIGKILL) | bit(SIGSTOP));
                    t.interrupted = 0;
                    delivery::change_mask(e, t);
                    return Outcome::Registers;
                }
                None => {
                    let mut info = [0u64; 16];
                    info[0] = signals::SIGSEGV as u64;
                    info[1] = 0x80;
                    // SAFETY: at the gate.
                    unsafe { crate::failure::fatal_at_gate(signals::SIGSEGV, &info, t) };
                    return Outcome::Registers;
                }
            }
        }
        nr::SIGALTSTACK => alternate_stack(t, a),
        _ if sends(call) => send(e, t, call),
        nr::RT_SIGTIMEDWAIT => wait(t, call),
        nr::PIDFD_SEND_SIGNAL => match own_pidfds::as_kill(e, call) {
            Some(kill) => send(e, t, &kill),
            None => visible(e, t, call),
        },
        // Waits; sigsuspend and sigtimedwait bring their own masks, which the kernel swaps atomically.
        _ => {
            phase(at::BLOCKED);
            interruptible(t, call)
        }
    })
}

/// After which a program may rely on having taken what waits: all that send, let through or await signals.
fn takes_signals(call: &Call) -> bool {
    match call.nr {
        nr::RT_SIGACTION | nr::SIGALTSTACK | nr::RT_SIGPENDING => false,
        nr::RT_SIGPROCMASK => call.args[1] != 0 && call.args[0] != SIG_BLOCK,
        _ => true,
    }
}

fn action(e: &mut Engine, call: &Call) -> i64 {
    let [sig, new, old, size, ..] = call.args;
    if size != 8 || !(1..=64).contains(&sig) {
        return err::EINVAL;
    }
    let before = e.kernel.actions[sig as usize];
    if new != 0 {
        let sig = sig as i32;
        let Some(mut wanted) = user::read::<SignalAction>(new) else { return err::EFAULT };
        if sig == SIGKILL || sig == SIGSTOP {
            return err::EINVAL;
        }
        wanted.mask &= !(bit(SIGKILL) | bit(SIGSTOP));
        e.kernel.actions[sig as usize] = wanted;
        if sig != SIGSYS && sig != SIGENGINE {
            let r = signals::apply(sig, &wanted);
            if err::is(r) {
                e.kernel.actions[sig as usize] = before;
                return r;
            }
        }
        e.kernel_dirty = true;
    }
    if old != 0 && !user::write(old, &before) {
        return err::EFAULT;
    }
    0
}

fn mask(e: &Engine, t: &mut Thread, [how, new, old, size, ..]: [u64; 6]) -> i64 {
    if size != 8 {
        return err::EINVAL;
    }
    let before = t.mask;
    if new != 0 {
        let Some(set) = user::read::<u64>(new) else { return err::EFAULT };
        t.mask = match how {
            0 => before | set,
            1 => before & !set,
            2 => set,
            _ => return err::EINVAL,
        } & !(bit(SIGKILL) | bit(SIGSTOP));
        delivery::change_mask(e, t);
    }
    if old != 0 && !user::write(old, &before) {
        return err::EFAULT;
    }
    0
}

fn alternate_stack(t: &mut Thread, [new, old, ..]: [u64; 6]) -> i64 {
    const ENOMEM: i64 = -12;
    const EPERM: i64 = -1;
    let sp = t.regs.rsp;
    let flags = frame::alt_flags(t, sp);
    let before = [t.altstack[0], flags, t.altstack[2]];
    if new != 0 {
        let Some(wanted) = user::read::<[u64; 3]>(new) else { return err::EFAULT };
        if frame::on_alt_stack(&t.altstack, sp) {
            return EPERM;
        }
        let mode = wanted[1] & 0xffff_ffff;
        if mode & !(1 << 31) & !3 != 0 {
            return err::EINVAL;
        }
        t.altstack = if mode & frame::SS_DISABLE != 0 {
            [0, frame::SS_DISABLE, 0]
        } else if wanted[2] < 2048 {
            return ENOMEM;
        } else {
            [wanted[0], mode & !1, wanted[2]]
        };
    }
    if old != 0 && !user::write(old, &before) {
        return err::EFAULT;
    }
    0
}

/// Signals to the program itself stay inside; to others they are visible.
fn send(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    let target = receiver_of(call);
    let sig = match call.nr {
        nr::TGKILL | nr::RT_TGSIGQUEUEINFO => call.args[2] as i32,
        _ => call.args[1] as i32,
    };
    let other = world::find(|other| other.tid as u64 == target && other.place != t.place);
    let own = target == e.kernel.pid as u64 || target == t.tid as u64 || other.is_some();
    let is_of_own_group = call.nr == nr::KILL && [0, -(groups::own(e) as i32)].contains(&(target as i32));
    if sig == SIGKILL && (own || is_of_own_group) {
        // Its own will, and no failure: a successor would only do the same.
        control().stopping.store(1, Release);
        let r = send_now(e, t, call, (own, other, sig));
        // It is still there, so that the kernel has refused.
        control().stopping.store(0, Release);
        return r;
    }
    send_now(e, t, call, (own, other, sig))
}

/// The process or thread that a call sends a signal to.
fn receiver_of(call: &Call) -> u64 {
    match call.nr {
        nr::TGKILL | nr::RT_TGSIGQUEUEINFO => call.args[1],
        _ => call.args[0],
    }
}

/// Sends signal `sig`, to the program itself (`own`), there to `other` if that is another thread.
fn send_now(e: &mut Engine, t: &mut Thread, call: &Call, (own, other, sig): (bool, Option<(u32, u32)>, i32)) -> i64 {
    if !own && call.nr == nr::KILL && sig == 0 {
        return sending::send(call, || native(&of_kernel(call)));
    }
    if !own {
        return visible_by(e, t, call, |t| sending::send(call, || interruptible(t, &of_kernel(call))));
    }
    // The program may know an older number of this process.
    let mut call = *call;
    // SAFETY: getpid and gettid have no effect.
    let (pid, own_tid) = unsafe { (syscall!(nr::GETPID) as u64, syscall!(nr::GETTID) as u64) };
    // Among several threads the first is known by the process's number, too.
    let receiver = other
        .or_else(|| world::find(|other| other.place == 0 && t.place != 0 && receiver_of(&call) == e.kernel.pid as u64));
    let tid = receiver.map_or(own_tid, |other| other.1 as u64);
    let place = match call.nr {
        nr::TKILL | nr::TGKILL | nr::RT_TGSIGQUEUEINFO => receiver.map_or(t.place, |other| other.0) as u64,
        _ => ANY,
    };
    match call.nr {
        nr::TGKILL | nr::RT_TGSIGQUEUEINFO => (call.args[0], call.args[1]) = (pid, tid),
        nr::TKILL => call.args[0] = tid,
        _ => call.args[0] = pid,
    }
    if (1..64).contains(&sig) {
        control().sent.fetch_or(bit(sig), Relaxed);
    }
    let r = native(&call);
    if r == 0 && (1..64).contains(&sig) && (world::has_several() || t.mask & bit(sig) != 0) {
        e.queue.push(&sent(e, &call, sig), place);
    }
    r
}

/// Is it a call that sends a signal?
pub fn sends(call: &Call) -> bool {
    matches!(call.nr, nr::KILL | nr::TKILL | nr::TGKILL | nr::RT_SIGQUEUEINFO | nr::RT_TGSIGQUEUEINFO)
}

/// Sends a signal to others that a dead predecessor was about to send.
pub fn send_again(t: &mut Thread, call: &Call) -> i64 {
    if sending::is_sent(call) {
        return 0;
    }
    sending::send(call, || interruptible(t, &of_kernel(call)))
}

/// A call that sends a signal to others, with the kernel's numbers.
fn of_kernel(call: &Call) -> Call {
    let mut real = *call;
    let [first, second, ..] = &mut real.args;
    match call.nr {
        nr::KILL if (*first as i32) < -1 => {
            *first = -i64::from(groups::to_kernel((*first as i32).unsigned_abs())) as u64;
        }
        // It may have left its group for a moment, for one that is not the program's.
        nr::KILL if *first as i32 == 0 => *first = -i64::from(groups::meant_by_own()) as u64,
        nr::KILL if *first as i32 <= 0 => (),
        nr::TGKILL | nr::RT_TGSIGQUEUEINFO => {
            (*first, *second) = (numbers::to_kernel(*first), numbers::to_kernel(*second))
        }
        _ => *first = numbers::to_kernel(*first),
    }
    real
}

/// What the receiver of a signal that the program sends to itself is told.
fn sent(e: &Engine, call: &Call, sig: i32) -> Info {
    const SI_TKILL: i32 = -6;
    let given = match call.nr {
        nr::RT_SIGQUEUEINFO => user::read::<Info>(call.args[2]),
        nr::RT_TGSIGQUEUEINFO => user::read::<Info>(call.args[3]),
        _ => None,
    };
    let mut info = given.unwrap_or_else(|| {
        let code = if call.nr == nr::KILL { 0 } else { SI_TKILL as u32 as u64 };
        // SAFETY: getuid has no effect.
        let user = unsafe { syscall!(GETUID) } as u64;
        let mut info = [0; 16];
        (info[1], info[2]) = (code, e.kernel.pid as u64 | user << 32);
        info
    });
    info[0] = info[0] & !0xffff_ffff | sig as u64;
    info
}

/// Takes a signal without a handler. What others sent comes again if the program is rolled back.
fn wait(t: &mut Thread, call: &Call) -> i64 {
    let mut info: Info = [0; 16];
    let mut own = *call;
    own.args[1] = (&raw mut info) as u64;
    phase(at::BLOCKED);
    let r = interruptible(t, &own);
    if err::is(r) {
        return r;
    }
    delivery::note_taken(t, &info);
    sending::note_taken(r as i32);
    delivery::renumber(&mut info);
    if call.args[1] != 0 && !user::write(call.args[1], &info) {
        return err::EFAULT;
    }
    r
}
