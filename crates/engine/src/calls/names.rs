//! Visible calls that are not idempotent: names made, removed and moved, files created, connections opened.

use crate::commit::commit;
use crate::dispatch::{interruptible, redo, Call};
use crate::held_files;
use crate::interrupted;
use crate::medium;
use crate::mutant;
use crate::noted;
use crate::operation::Operation;
use crate::ring::{op, Entry};
use crate::state::Engine;
use crate::sys::{err, nr, syscall};
use crate::thread::Thread;
use crate::undo;
use crate::user;
use crate::world;
use core::sync::atomic::Ordering::*;
use outlast_image::context::pending_kind;
use outlast_image::mutant::Mutant;

const AT_FDCWD: i32 = -100;
const AT_REMOVEDIR: u32 = 0x200;
const O_EXCL: u64 = 0o200;
const O_TRUNC: u64 = 0o1000;
const O_CLOEXEC: u64 = 0o2000000;
const O_WRONLY_CREAT_TRUNC: u32 = 0o1 | 0o100 | 0o1000;

/// May be issued again where that changes nothing, and yet answers otherwise then: shutdown, for example.
pub fn is_refused_again(call: &Call) -> bool {
    !mutant::without(Mutant::Once) && outlast_calls::again(call.nr, &call.args).is_some()
}

pub fn serve(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    held_files::unlinking(e, call);
    if call.nr == nr::CONNECT && world::has_several() {
        // It may wait for another thread of this very process, which the ring would keep from the engine.
        return redo(e, t, call);
    }
    // The session, where the ring's completions lie, is gone after a loss of power; a look at the name is not.
    let is_kept = medium::is_durable(e) && undo::concerns_names(call);
    if is_kept {
        medium::save_witness(e, call);
    }
    if is_kept || !e.ring.available() || entry(call).is_none() {
        return noted::names::serve(e, t, call);
    }
    let seq = commit(e, call.pending(pending_kind::RING));
    if seq == 0 {
        return interruptible(t, call);
    }
    finish(e, t, call, &mut Operation::new(seq))
}

/// Does what the commit stands before, unless a dead predecessor did.
pub fn finish(e: &mut Engine, t: &mut Thread, call: &Call, operation: &mut Operation) -> i64 {
    let Some(mut entry) = entry(call) else { return err::ENOSYS };
    loop {
        let r = operation.perform(e, |e, id| {
            entry.user_data = id;
            e.ring.run_while(&entry, || interrupted::may_wait(call))
        });
        match (r, call.nr) {
            (err::EINTR | err::ECANCELED, _) => {
                if t.pending.load(Acquire) != 0 {
                    t.interrupted = 1;
                    return err::EINTR;
                }
            }
            (0.., nr::OPEN | nr::OPENAT | nr::CREAT | nr::OPENAT2) => {
                e.fds.opened(r);
                return r;
            }
            // The connection of the predecessor came about after its death.
            (err::EISCONN, nr::CONNECT) if operation.is_resumed() => return 0,
            _ => return r,
        }
    }
}

/// Does the call make a descriptor of a file?
pub fn opens(call: &Call) -> bool {
    matches!(call.nr, nr::OPEN | nr::OPENAT | nr::CREAT)
}

/// A file that a dead predecessor created and opened as `fd` is opened once more: as it is now, neither new nor empty.
pub fn open_again(e: &mut Engine, call: &Call, fd: i64) -> i64 {
    let a = call.args;
    let (dir, path, flags) = match call.nr {
        nr::OPENAT => (a[0], a[1], a[2]),
        nr::OPEN => (AT_FDCWD as u64, a[0], a[1]),
        _ => (AT_FDCWD as u64, a[0], O_WRONLY_CREAT_TRUNC as u64),
    };
    let flags = flags & !(O_EXCL | O_TRUNC);
    // SAFETY: opens the program's file under the number the program is to have.
    unsafe {
        let now = syscall!(nr::OPENAT, dir, path, flags, 0o600);
        if err::is(now) || now == fd {
            e.fds.opened(now);
            return now;
        }
        let r = syscall!(nr::DUP3, now, fd, flags & O_CLOEXEC);
        syscall!(nr::CLOSE, now);
        e.fds.opened(r);
        r
    }
}

/// A file that a dead predecessor has made is opened once more, with whatever number is free. One that may not be opened as it was made (with
/// a mode of 0444, say) is made anew.
pub fn open_made(call: &Call) -> i64 {
    let a = call.args;
    let (dir, path, flags, mode) = match call.nr {
        nr::OPEN => (AT_FDCWD as u64, a[0], a[1], a[2]),
        nr::OPENAT => (a[0], a[1], a[2], a[3]),
        _ => {
            let [flags, mode] = user::read::<[u64; 2]>(a[2]).unwrap_or_default();
            (a[0], a[1], flags, mode)
        }
    };
    // SAFETY: the program's own file; the kernel checks the path.
    unsafe {
        match syscall!(nr::OPENAT, dir, path, flags & !(O_EXCL | O_TRUNC), mode) {
            err::EACCES => {
                syscall!(nr::UNLINKAT, dir, path, 0);
                syscall!(nr::OPENAT, dir, path, flags, mode)
            }
            r => r,
        }
    }
}

/// The ring operation with the same effect.
fn entry(call: &Call) -> Option<Entry> {
    let a = call.args;
    let cwd = AT_FDCWD;
    let e = |opcode, fd: i32, addr: u64, len: u32, off: u64, op_flags: u32| {
        Some(Entry { opcode, fd, addr, len, off, op_flags, ..Default::default() })
    };
    let dir = a[0] as i32;
    match call.nr {
        // O_LARGEFILE is what open(2) adds by itself on 64-bit kernels, and io_uring as well.
        nr::OPEN => e(op::OPENAT, cwd, a[0], a[2] as u32, 0, a[1] as u32),
        nr::CREAT => e(op::OPENAT, cwd, a[0], a[1] as u32, 0, O_WRONLY_CREAT_TRUNC),
        nr::OPENAT => e(op::OPENAT, dir, a[1], a[3] as u32, 0, a[2] as u32),
        nr::OPENAT2 => e(op::OPENAT2, dir, a[1], a[3] as u32, a[2], 0),
        nr::MKDIR => e(op::MKDIRAT, cwd, a[0], a[1] as u32, 0, 0),
        nr::MKDIRAT => e(op::MKDIRAT, dir, a[1], a[2] as u32, 0, 0),
        nr::UNLINK => e(op::UNLINKAT, cwd, a[0], 0, 0, 0),
        nr::RMDIR => e(op::UNLINKAT, cwd, a[0], 0, 0, AT_REMOVEDIR),
        nr::UNLINKAT => e(op::UNLINKAT, dir, a[1], 0, 0, a[2] as u32),
        nr::RENAME => e(op::RENAMEAT, cwd, a[0], cwd as u32, a[1], 0),
        nr::RENAMEAT => e(op::RENAMEAT, dir, a[1], a[2] as u32, a[3], 0),
        nr::RENAMEAT2 => e(op::RENAMEAT, dir, a[1], a[2] as u32, a[3], a[4] as u32),
        nr::SYMLINK => e(op::SYMLINKAT, cwd, a[0], 0, a[1], 0),
        nr::SYMLINKAT => e(op::SYMLINKAT, a[1] as i32, a[0], 0, a[2], 0),
        nr::LINK => e(op::LINKAT, cwd, a[0], cwd as u32, a[1], 0),
        nr::LINKAT => e(op::LINKAT, dir, a[1], a[2] as u32, a[3], a[4] as u32),
        nr::CONNECT => e(op::CONNECT, dir, a[1], 0, a[2], 0),
        _ => None,
    }
}
