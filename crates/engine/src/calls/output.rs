//! Calls that others can see: output is committed before it leaves, and leaves exactly once.

use super::input::{socket_timeout, SO_SNDTIMEO};
use super::message::{single, Header, Vectors, CONTROL, CONTROL_LEN, DATA, DATA_LEN, HEAD, NAME, NAME_LEN};
use super::{credentials, joined, messages, move_between, offsets, splice, unseen, write_file};
use crate::commit::commit;
use crate::control::control;
use crate::dispatch::{interruptible, native, visible, Call};
use crate::group;
use crate::history;
use crate::inputs;
use crate::mutant::without;
use crate::operation::{self, is_nonblocking, knows_nowait, wait_ready, Operation, POLLOUT};
use crate::replies;
use crate::retrace;
use crate::ring::{op, Entry};
use crate::state::Engine;
use crate::sys::{err, nr, syscall};
use crate::thread::{pending_bit, standing, Thread};
use crate::user;
use crate::world;
use core::sync::atomic::Ordering::*;
use outlast_image::context::{pending_kind, PendingCall};
use outlast_image::descriptor::descriptor_kind as kind;
use outlast_image::mutant::Mutant;

const MSG_DONTWAIT: u64 = 0x40;
const MSG_NOSIGNAL: u64 = 0x4000;
const RWF_NOWAIT: u32 = 8;
const MOST: u64 = 0x7fff_f000;

pub fn serve(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    let fd = call.fd();
    unseen::share_passed(e, call);
    if replies::are_owed() {
        replies::sends_otherwise(e, call);
    }
    match (call.nr, e.fds.kind(fd)) {
        (_, kind::UNKNOWN) => native(call),
        (nr::PWRITE64 | nr::PWRITEV | nr::PWRITEV2 | nr::WRITE | nr::WRITEV, kind::REGULAR | kind::BLOCK) => {
            write_file::serve(e, t, call)
        }
        (nr::WRITE | nr::WRITEV, kind::CHARACTER) if is_null(fd) => native(call),
        (nr::WRITE | nr::WRITEV | nr::SENDTO | nr::SENDMSG, _) => send(e, t, call),
        (nr::SENDFILE, kind::PIPE | kind::SOCKET | kind::TERMINAL | kind::ANONYMOUS)
            if e.fds.kind(call.args[1] as i32) == kind::REGULAR =>
        {
            send(e, t, call)
        }
        (nr::SENDMMSG, _) => messages::send(e, t, call),
        (nr::SPLICE, _) => splice::serve(e, t, call),
        (nr::SENDFILE | nr::COPY_FILE_RANGE, _) => move_between::serve(e, t, call),
        _ => inputs::serve_again(e, call).unwrap_or_else(|| visible(e, t, call)),
    }
}

fn is_null(fd: i32) -> bool {
    let mut st = [0u64; 18];
    // SAFETY: fstat writes 144 bytes. st_rdev is the sixth word: /dev/null is 1:3.
    unsafe { syscall!(nr::FSTAT, fd, st.as_mut_ptr()) == 0 && st[5] == 0x103 }
}

fn send(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    if without(Mutant::OutputCommit) {
        return interruptible(t, call);
    }
    if retrace::is_on() {
        if let Some(r) = retrace::serve(e, t, call) {
            return r;
        }
    }
    if let Some(r) = replies::serve(e, t, call) {
        history::lose(e);
        return r;
    }
    let seq = group::commit(e, t, call.pending(operation::kind(e)));
    if seq == 0 {
        return interruptible(t, call);
    }
    finish(e, t, call, &mut Operation::new(seq))
}

/// Sends what the commit stands before, all parts of it, or what a dead predecessor left of it.
pub fn finish(e: &mut Engine, t: &mut Thread, call: &Call, operation: &mut Operation) -> i64 {
    // What an older generation stands before was sent since.
    let before = if operation.is_resumed() && retrace::is_on() { retrace::made(e, call) } else { 0 };
    if before > 0 {
        if joined::total(call) == Some(before) {
            return before as i64;
        }
        *operation = Operation::rest(operation.seq(), before);
    }
    let r = make(e, t, call, operation);
    history::sent_behind(e, call, (before, r), operation.seq());
    r
}

fn make(e: &mut Engine, t: &mut Thread, call: &Call, operation: &mut Operation) -> i64 {
    match call.nr {
        nr::SPLICE => return splice::finish(e, t, call, operation),
        nr::SENDMMSG => return messages::finish_sending(e, t, call, operation),
        _ => {}
    }
    let r = send_parts(e, t, call, operation);
    if control().request.load(Relaxed) != 0 {
        t.pending.fetch_or(pending_bit::REQUEST, Release);
    }
    r
}

fn send_parts(e: &mut Engine, t: &mut Thread, call: &Call, operation: &mut Operation) -> i64 {
    let fd = call.fd();
    let resumed = operation.was_found() || operation.done > 0;
    let mut nowait = knows_nowait(e.fds.kind(fd));
    loop {
        let (entry, total) = match entry(e, call, operation.done, nowait) {
            Ok(x) => x,
            Err(r) => return r,
        };
        // A predecessor sent everything and noted that: once more would be an empty message, or the same bytes again.
        if operation.has_parts() && (operation.done >= total || call.nr == nr::SENDFILE) {
            break;
        }
        let r = operation.run(e, entry);
        match r {
            0.. => {
                operation.advance(r as u64);
                let stream = r as u64 > 0 && call.nr != nr::SENDFILE;
                if operation.done >= total || !stream || flags(call) & MSG_DONTWAIT != 0 || is_nonblocking(fd) {
                    break;
                }
            }
            err::EOPNOTSUPP if nowait => nowait = false,
            err::EAGAIN => {
                if flags(call) & MSG_DONTWAIT != 0 || is_nonblocking(fd) {
                    return if operation.done > 0 { operation.done as i64 } else { r };
                }
                let w = wait_to_send(e, t, call, operation);
                if w == 0 {
                    return partial(t, operation, r);
                }
                if err::is(w) && !(w == err::EINTR && may_go_on(t, operation)) {
                    return partial(t, operation, w);
                }
            }
            err::EINTR | err::ECANCELED => {
                if t.pending.load(Acquire) != 0 && !may_go_on(t, operation) {
                    t.interrupted = 1;
                    return partial(t, operation, err::EINTR);
                }
            }
            _ => {
                if r == err::EPIPE && resumed && flags(call) & MSG_NOSIGNAL == 0 {
                    // The kernel signalled the predecessor, which is dead.
                    // SAFETY: a signal to this very thread.
                    unsafe { syscall!(nr::TKILL, syscall!(nr::GETTID), crate::signals::SIGPIPE) };
                }
                return if operation.done > 0 { operation.done as i64 } else { r };
            }
        }
    }
    if call.nr == nr::SENDFILE {
        return sent_file(e, call, operation.done);
    }
    operation.done as i64
}

/// Commits what is left of an output, and sends it.
pub fn go_on(e: &mut Engine, t: &mut Thread, part: &PendingCall) -> i64 {
    let seq = commit(e, PendingCall { kind: operation::kind(e), ..*part });
    finish(e, t, &Call { nr: part.nr as u64, args: part.args }, &mut Operation::rest(seq, part.offset))
}

/// Commits, and sends what comes behind the first `done` bytes of a call, which were sent before the program went back.
pub fn send_behind(e: &mut Engine, t: &mut Thread, call: &Call, done: u64) -> i64 {
    let pending = PendingCall { offset: done, ..call.pending(operation::kind(e)) };
    let seq = commit(e, pending);
    if seq == 0 {
        return done as i64;
    }
    let r = make(e, t, call, &mut Operation::rest(seq, done));
    history::sent_behind(e, call, (done, r), seq);
    r
}

/// Waits until more can be sent, or no longer than the socket's time-out says: 0. Where other threads have committed meanwhile, what is left is committed anew.
fn wait_to_send(e: &mut Engine, t: &mut Thread, call: &Call, operation: &mut Operation) -> i64 {
    let timeout = socket_timeout(e, call.fd(), SO_SNDTIMEO);
    if !world::has_several() {
        return wait_ready(t, call.fd(), POLLOUT, timeout);
    }
    let rest = PendingCall { offset: operation.done, ..call.pending(pending_kind::PART) };
    if operation.done > 0 {
        t.pending_call = rest;
        t.standing.store(standing::IN_PART, Release);
    }
    t.is_fresh = true;
    let w = wait_ready(t, call.fd(), POLLOUT, timeout);
    t.standing.store(standing::IN_CALL, Release);
    if e.store().seq() != operation.seq() && operation.done > 0 {
        let seq = commit(e, PendingCall { kind: operation::kind(e), ..rest });
        *operation = Operation::rest(seq, operation.done);
    } else if e.store().seq() != operation.seq() && !err::is(w) {
        *operation = Operation::new(commit(e, call.pending(operation::kind(e))));
    }
    w
}

/// Only a signal of the program's cuts an output short that is on its way: a request of the supervisor's waits for its end, and
/// a thread that another one wanted to stop stands still already.
fn may_go_on(t: &mut Thread, operation: &Operation) -> bool {
    const OURS: u32 = pending_bit::REQUEST | pending_bit::STOP;
    let only_ours = t.pending.load(Acquire) & !OURS == 0 && operation.done > 0;
    if only_ours {
        t.pending.fetch_and(!OURS, AcqRel);
        t.interrupted = 0;
    }
    only_ours
}

fn partial(t: &mut Thread, operation: &Operation, r: i64) -> i64 {
    if operation.done > 0 {
        t.interrupted = 0;
        return operation.done as i64;
    }
    r
}

fn flags(call: &Call) -> u64 {
    match call.nr {
        nr::SENDTO => call.args[3],
        nr::SENDMSG => call.args[2],
        _ => 0,
    }
}

/// The ring's entry for what is left after `done` bytes, and the total.
fn entry(e: &mut Engine, call: &Call, done: u64, nowait: bool) -> Result<(Entry, u64), i64> {
    let a = call.args;
    let rw = if nowait { RWF_NOWAIT } else { 0 };
    let fd = a[0] as i32;
    match call.nr {
        nr::WRITE => {
            let total = a[2].min(MOST);
            let (addr, len) = (a[1] + done, (total - done.min(total)) as u32);
            Ok((Entry { opcode: op::WRITE, fd, addr, len, off: !0, op_flags: rw, ..Default::default() }, total))
        }
        nr::WRITEV => {
            let v = Vectors::new(a[1], a[2]).ok_or(err::EFAULT)?;
            let (addr, count) = v.place(done).ok_or(err::EFAULT)?;
            let entry =
                Entry { opcode: op::WRITEV, fd, addr, len: count as u32, off: !0, op_flags: rw, ..Default::default() };
            Ok((entry, v.total.min(MOST)))
        }
        nr::SENDTO => {
            let header = Header {
                name: a[4],
                name_len: if a[4] == 0 { 0 } else { a[5] },
                vectors: single(a[1] + done, a[2] - done.min(a[2])),
                count: 1,
                ..Default::default()
            };
            Ok((message(fd, header, a[3])?, a[2]))
        }
        nr::SENDMSG => {
            let mut header: Header = user::read(a[1]).ok_or(err::EFAULT)?;
            let v = Vectors::new(header.vectors, header.count).ok_or(err::EINVAL)?;
            (header.vectors, header.count) = v.place(done).ok_or(err::EFAULT)?;
            if done > 0 {
                // Descriptors and credentials went with the first part.
                (header.control, header.control_len) = (0, 0);
            }
            Ok((message(fd, header, a[2])?, v.total))
        }
        nr::SENDFILE => {
            let want = a[3].min(DATA_LEN);
            let offset = if a[2] != 0 {
                user::read::<u64>(a[2]).ok_or(err::EFAULT)?
            } else {
                // SAFETY: lseek(fd, 0, SEEK_CUR) has no effect.
                unsafe { syscall!(nr::LSEEK, a[1], 0, 1) as u64 }
            };
            let _ = e;
            // SAFETY: reads into the bounce buffer's data part.
            let n = unsafe { syscall!(nr::PREAD64, a[1], DATA, want, offset) };
            if n <= 0 {
                return Err(n);
            }
            let entry =
                Entry { opcode: op::WRITE, fd, addr: DATA, len: n as u32, off: !0, op_flags: rw, ..Default::default() };
            Ok((entry, n as u64))
        }
        _ => Err(err::ENOSYS),
    }
}

/// Moves the source's offset by what was sent: after a death the rollback has set it back first.
pub fn sent_file(e: &mut Engine, call: &Call, n: u64) -> i64 {
    let a = call.args;
    if a[2] != 0 {
        let Some(old) = user::read::<u64>(a[2]) else { return err::EFAULT };
        user::write(a[2], &(old + n));
    } else {
        offsets::note(e, a[1] as i32);
        // SAFETY: moves the offset of the program's file, noted in the journal.
        unsafe { syscall!(nr::LSEEK, a[1], n, 1) };
    }
    n as i64
}

fn message(fd: i32, mut header: Header, flags: u64) -> Result<Entry, i64> {
    if header.name != 0 {
        if header.name_len > NAME_LEN {
            return Err(err::EINVAL);
        }
        // SAFETY: the name's place in the bounce buffer.
        let name = unsafe { core::slice::from_raw_parts_mut(NAME as *mut u8, header.name_len as usize) };
        if !user::read_bytes(header.name, name) {
            return Err(err::EFAULT);
        }
        header.name = NAME;
    }
    if header.control_len > 0 && header.control_len <= CONTROL_LEN {
        // SAFETY: the control data's place in the bounce buffer.
        let control = unsafe { core::slice::from_raw_parts_mut(CONTROL as *mut u8, header.control_len as usize) };
        if !user::read_bytes(header.control, control) {
            return Err(err::EFAULT);
        }
        credentials::to_kernel(control);
        header.control = CONTROL;
    }
    // SAFETY: the header's place at the start of the bounce buffer.
    unsafe { (HEAD as *mut Header).write(header) };
    let op_flags = (flags | MSG_DONTWAIT) as u32;
    Ok(Entry { opcode: op::SENDMSG, fd, addr: HEAD, len: 1, op_flags, ..Default::default() })
}
