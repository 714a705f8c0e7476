//! splice on the ring: what a pipe gave, or took, is found again, so that a kill neither loses nor repeats it.

use super::{move_between, offsets};
use crate::commit::commit;
use crate::dispatch::{interruptible, Call};
use crate::inputs;
use crate::operation::{is_nonblocking, wait_ready, Operation, POLLIN, POLLOUT};
use crate::ring::{op, Entry};
use crate::state::Engine;
use crate::sys::{err, nr, syscall};
use crate::thread::Thread;
use crate::user;
use core::sync::atomic::Ordering::*;
use outlast_image::context::pending_kind;
use outlast_image::descriptor::descriptor_kind as kind;

const VMSPLICE: u64 = 278;
const SPLICE_F_NONBLOCK: u64 = 2;
const F_GETFL: u64 = 3;
const O_ACCMODE: i64 = 3;
const O_RDONLY: i64 = 0;
const MOST: u64 = 0x7fff_f000;
/// Instead of a position: where the offset is.
const AT_OFFSET: u64 = !0;
const SEEK_CUR: u64 = 1;

pub fn serve(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    if let Some(r) = inputs::serve_again(e, call) {
        return r;
    }
    if !e.ring.available() {
        return move_between::serve(e, t, call);
    }
    let seq = commit(e, call.pending(pending_kind::RING));
    if seq == 0 {
        return interruptible(t, call);
    }
    finish(e, t, call, &mut Operation::new(seq))
}

/// Moves what the commit stands before, unless a dead predecessor did. What the kill cut short goes on in another part, as far as
/// nobody has to wait for it: a splice that nobody kills moves all that is there.
pub fn finish(e: &mut Engine, t: &mut Thread, call: &Call, operation: &mut Operation) -> i64 {
    // Parts of predecessors: a rollback has set back what they moved along.
    advance(e, call, operation.done, true);
    loop {
        let Some(entry) = entry(call, operation.done) else { return err::EFAULT };
        let found = operation.was_found();
        if !found {
            offsets::note_moved(e, call);
        }
        match operation.run(e, entry) {
            r @ 1.. => {
                advance(e, call, r as u64, found);
                operation.advance(r as u64);
                if !found || operation.done >= call.args[4] {
                    return operation.done as i64;
                }
            }
            _ if operation.done > 0 => return operation.done as i64,
            err::EAGAIN if may_wait(e, call) => {
                let w = wait(e, t, call);
                if err::is(w) {
                    return w;
                }
            }
            err::EINTR | err::ECANCELED => {
                if t.pending.load(Acquire) != 0 {
                    t.interrupted = 1;
                    return err::EINTR;
                }
            }
            r => {
                if r == err::EPIPE {
                    // The kernel signalled its worker, or the predecessor.
                    // SAFETY: a signal to this very thread.
                    unsafe { syscall!(nr::TKILL, syscall!(nr::GETTID), crate::signals::SIGPIPE) };
                }
                return r;
            }
        }
    }
}

/// vmsplice lends a pipe the pages of the program, which nobody can take back from it or give it twice: they are copied.
pub fn by_copying(e: &mut Engine, call: &Call) -> Option<Call> {
    let fd = call.fd();
    if call.nr != VMSPLICE || call.args[3] & SPLICE_F_NONBLOCK != 0 || e.fds.kind(fd) != kind::PIPE {
        return None;
    }
    // SAFETY: F_GETFL has no effect.
    let flags = unsafe { syscall!(nr::FCNTL, fd, F_GETFL) };
    let nr = if flags & O_ACCMODE == O_RDONLY { nr::READV } else { nr::WRITEV };
    Some(Call { nr, args: [call.args[0], call.args[1], call.args[2], 0, 0, 0] })
}

/// The ring's entry for what is left after `done` bytes. It never waits: that is for the program's own thread, which signals can reach.
fn entry(call: &Call, done: u64) -> Option<Entry> {
    let a = call.args;
    let position = |at: u64| if at == 0 { Some(AT_OFFSET) } else { user::read(at) };
    Some(Entry {
        opcode: op::SPLICE,
        fd: a[2] as i32,
        off: position(a[3])?,
        addr: position(a[1])?,
        len: a[4].saturating_sub(done).min(MOST) as u32,
        op_flags: (a[5] | SPLICE_F_NONBLOCK) as u32,
        // `splice_fd_in`
        pad: [(a[0] as u32 as u64) << 32, 0, 0],
        ..Default::default()
    })
}

/// Would the kernel let the call wait?
fn may_wait(e: &mut Engine, call: &Call) -> bool {
    let mut is_never = |fd: u64| e.fds.kind(fd as i32) == kind::PIPE && is_nonblocking(fd as i32);
    call.args[5] & SPLICE_F_NONBLOCK == 0 && !is_never(call.args[0]) && !is_never(call.args[2])
}

/// Waits until the source has something and the target has room.
fn wait(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    for (fd, events) in [(call.args[0], POLLIN), (call.args[2], POLLOUT)] {
        if e.fds.kind(fd as i32) != kind::REGULAR {
            let w = wait_ready(t, fd as i32, events, -1);
            if err::is(w) {
                return w;
            }
        }
    }
    0
}

/// Moves the positions that the caller keeps by what was moved, and the offsets of files that a rollback has set back.
fn advance(e: &mut Engine, call: &Call, by: u64, found: bool) {
    if by == 0 {
        return;
    }
    for (fd, position) in [(call.args[0] as i32, call.args[1]), (call.args[2] as i32, call.args[3])] {
        if position != 0 {
            if let Some(old) = user::read::<u64>(position) {
                user::write(position, &old.wrapping_add(by));
            }
        } else if found && e.fds.kind(fd) == kind::REGULAR {
            offsets::note(e, fd);
            // SAFETY: moves the offset of the program's file, noted in the journal.
            unsafe { syscall!(nr::LSEEK, fd, by, SEEK_CUR) };
        }
    }
}
