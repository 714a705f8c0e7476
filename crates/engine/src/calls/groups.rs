//! Process group, session, and the terminal's foreground group.
//!
//! A group that nobody but the program is in dies with it. A restored process makes it anew, and takes the terminal's
//! foreground again if it was there: the terminal still names the dead one. Where it could not have its old process id
//! again, its group has another number, too, which the program never sees.
//!
//! The number of a session is taken as long as one process of it lives: its leader, recovered, would get another one. A group can be left
//! for a while, a session cannot. So a session that a daemon makes, without a terminal, is one that only the program knows
//! (`option::OWN_SESSIONS`), until its leader wants a terminal.

use crate::children;
use crate::commit::{commit, commit_at_gate};
use crate::control::control;
use crate::dispatch::{interruptible, native, straight, Call};
use crate::mutant::without;
use crate::numbers::{self, to_program};
use crate::own_descriptors::Passing;
use crate::state::{engine, Engine};
use crate::sys::{err, nr, syscall};
use crate::thread::Thread;
use crate::user;
use core::sync::atomic::Ordering::{Acquire, Release};
use outlast_image::context::pending_kind;
use outlast_image::inject::option;
use outlast_image::mutant::Mutant;

pub const TIOCGPGRP: u64 = 0x540f;
pub const TIOCSPGRP: u64 = 0x5410;
const O_RDWR_NOCTTY: u64 = 0o2 | 0o400;
pub const TIOCSCTTY: u64 = 0x540e;
const EPERM: i64 = -1;
const ESRCH: i64 = -3;

/// A group's number for the kernel: its leader's, if that has another now and nobody has kept the group.
pub fn to_kernel(group: u32) -> u32 {
    // SAFETY: sends nothing.
    match unsafe { syscall!(nr::KILL, -(group as i64), 0) } {
        ESRCH => numbers::to_kernel(group.into()) as u32,
        _ => group,
    }
}

/// getpgrp, getpgid and getsid, where the program's numbers are others than the kernel's.
pub fn ask(e: &Engine, call: &Call) -> i64 {
    let mut call = *call;
    if makes_own_sessions(e) && (call.nr == nr::GETPGRP || [0, e.kernel.pid].contains(&(call.args[0] as u32))) {
        match call.nr {
            nr::GETSID if e.kernel.own_session != 0 => return e.kernel.sid.into(),
            nr::GETSID => (),
            // It may have left that for a moment, so that its leader can come back.
            _ => return own(e).into(),
        }
    }
    call.args[0] = numbers::to_kernel(call.args[0]);
    to_program(native(&call))
}

/// The program's group, as the program knows it: its own doing, or its parent's since.
pub fn own(e: &Engine) -> u32 {
    match control().group_given.load(Acquire) {
        0 => e.kernel.pgid,
        given => given as u32,
    }
}

/// The kernel's number of its own group, for calls that name it; 0: the kernel knows which it is.
pub fn meant_by_own() -> u32 {
    // SAFETY: only looks which group it is in.
    let e = unsafe { engine() };
    if makes_own_sessions(e) {
        to_kernel(own(e))
    } else {
        0
    }
}

/// Is it a call that sets a group or a session?
pub fn sets(call: &Call) -> bool {
    matches!(call.nr, nr::SETPGID | nr::SETSID)
}

/// setpgid and setsid.
pub fn set(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    commit(e, call.pending(pending_kind::REDO));
    t.regs.rax = make(e, call) as u64;
    commit_at_gate(e);
    t.regs.rax as i64
}

/// Makes the call, before or after a death: the restored process is in its committed group.
pub fn make(e: &mut Engine, call: &Call) -> i64 {
    if call.nr == nr::SETSID && makes_own_sessions(e) && !has_terminal() {
        return begin_own_session(e);
    }
    let mut wanted = *call;
    wanted.args[0] = numbers::to_kernel(call.args[0]);
    if call.args[1] as i32 > 0 {
        wanted.args[1] = to_kernel(call.args[1] as u32).into();
    }
    let mut r = native(&wanted);
    if r == ESRCH && call.nr == nr::SETPGID {
        r = children::set_group(call.args[0] as i32, call.args[1] as i32).unwrap_or(r);
    }
    let of_itself = call.nr == nr::SETSID || call.args[0] == 0 || call.args[0] as u32 == e.kernel.pid;
    if !err::is(r) && of_itself {
        let own = e.kernel.pid;
        if call.nr == nr::SETSID {
            (e.kernel.sid, e.kernel.pgid, e.kernel.own_session) = (own, own, 0);
            show_session(e);
        } else {
            e.kernel.pgid = if call.args[1] == 0 { own } else { call.args[1] as u32 };
        }
        control().group_given.store(0, Release);
        e.kernel_dirty = true;
    }
    to_program(r)
}

fn makes_own_sessions(e: &Engine) -> bool {
    e.args.options & option::OWN_SESSIONS != 0
}

fn has_terminal() -> bool {
    Passing::open(c"/dev/tty".as_ptr().cast(), O_RDWR_NOCTTY).is_ok()
}

/// A session that only the program knows; for the kernel it is a group.
fn begin_own_session(e: &mut Engine) -> i64 {
    let pid = e.kernel.pid;
    if own(e) == pid {
        return EPERM;
    }
    // SAFETY: sets the group of this process.
    let r = unsafe { syscall!(nr::SETPGID, 0, 0) };
    if err::is(r) {
        return r;
    }
    (e.kernel.sid, e.kernel.pgid, e.kernel.own_session) = (pid, pid, 1);
    control().group_given.store(0, Release);
    e.kernel_dirty = true;
    show_session(e);
    pid.into()
}

/// For the image that the program becomes; and calls that ask are answered here.
pub fn show_session(e: &Engine) {
    let is_own = e.kernel.own_session != 0;
    control().own_session.store(if is_own { e.kernel.sid } else { 0 }, Release);
    if makes_own_sessions(e) {
        straight::answer_groups();
    }
}

/// The leader of a session wants a terminal for it: it has to be the kernel's.
pub fn make_real(e: &mut Engine) {
    if e.kernel.own_session == 0 || e.kernel.sid != e.kernel.pid {
        return;
    }
    // SAFETY: asks for and sets the group and the session of this process. A leader of a group cannot make a session, and goes into its
    // parent's group for that.
    let r = unsafe {
        let group = syscall!(nr::GETPGID, syscall!(nr::GETPPID));
        syscall!(nr::SETPGID, 0, group);
        syscall!(nr::SETSID)
    };
    if !err::is(r) {
        e.kernel.own_session = 0;
        e.kernel_dirty = true;
        show_session(e);
    }
}

/// Does the call open what may become the terminal of its session?
pub fn may_take_terminal(e: &Engine, call: &Call) -> bool {
    const O_NOCTTY: u64 = 0o400;
    const PLACES: [&[u8]; 3] = [b"/dev/tty", b"/dev/pts/", b"/dev/console"];
    if e.kernel.own_session == 0 || e.kernel.sid != e.kernel.pid {
        return false;
    }
    let (path, flags) = match call.nr {
        nr::OPEN => (call.args[0], call.args[1]),
        nr::OPENAT => (call.args[1], call.args[2]),
        _ => return false,
    };
    let mut given = [0; 4096];
    let len = if flags & O_NOCTTY == 0 { user::read_path(path, &mut given) } else { None };
    len.is_some_and(|len| PLACES.iter().any(|place| given[..len].starts_with(place)))
}

/// ioctl: who is in the foreground?
pub fn ask_foreground(e: &Engine, t: &mut Thread, call: &Call) -> i64 {
    let r = interruptible(t, call);
    if r == 0 {
        if let Some(group) = user::read::<u32>(call.args[2]).filter(|&g| g as u64 == numbers::own()) {
            if group != e.kernel.pid {
                user::write(call.args[2], &e.kernel.pid);
            }
        }
    }
    r
}

/// ioctl: puts a group into the foreground.
pub fn set_foreground(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    commit(e, call.pending(pending_kind::REDO));
    put_in_front(e, t, call)
}

/// Is it the ioctl that puts a group into the foreground?
pub fn puts_in_front(call: &Call) -> bool {
    call.nr == nr::IOCTL && call.args[1] & 0xffff_ffff == TIOCSPGRP
}

/// Makes the call, before or after a death.
pub fn put_in_front(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    let Some(group) = user::read::<u32>(call.args[2]) else { return err::EFAULT };
    let real = to_kernel(group);
    let made = Call { args: [call.args[0], TIOCSPGRP, (&raw const real) as u64, 0, 0, 0], ..*call };
    let r = interruptible(t, &made);
    if r == 0 {
        e.kernel.foreground = group;
        e.kernel_dirty = true;
    }
    r
}

/// The anchor has a group of its own: a restored process goes back to the program's, and to the foreground if that is
/// where it was.
pub fn restore(e: &Engine) {
    if without(Mutant::ProcessGroup) {
        return;
    }
    show_session(e);
    let (wanted, group) = (control().pgid.load(Acquire), own(e));
    let tty = Passing::open(c"/dev/tty".as_ptr().cast(), O_RDWR_NOCTTY).ok();
    let mut front = 0u32;
    // SAFETY: asks for and sets the groups of this process and its terminal, with every signal blocked.
    unsafe {
        let vacant = tty.as_ref().is_some_and(|tty| {
            syscall!(nr::IOCTL, tty.fd, TIOCGPGRP, &raw mut front) == 0
                && syscall!(nr::KILL, -(front as i64), 0) == ESRCH
        });
        if e.kernel.sid == e.kernel.pid && e.kernel.own_session == 0 {
            syscall!(nr::SETSID);
        } else if group == e.kernel.pid {
            // Others may have kept it, which is another one where this process has another number.
            if err::is(syscall!(nr::SETPGID, 0, group)) {
                syscall!(nr::SETPGID, 0, 0);
            }
        } else if err::is(syscall!(nr::SETPGID, 0, group)) && wanted > 0 {
            syscall!(nr::SETPGID, 0, wanted);
        }
        if let Some(tty) = tty.filter(|_| vacant && e.kernel.foreground == group) {
            let real = syscall!(nr::GETPGID, 0) as u32;
            syscall!(nr::IOCTL, tty.fd, TIOCSPGRP, &raw const real);
        }
    }
}
