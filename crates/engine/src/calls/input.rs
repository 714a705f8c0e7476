//! Calls that consume: bytes of pipes, sockets and terminals, connections.
//!
//! The wait happens first, in the program's context; then a commit, then the operation on the ring, whose data lands in
//! the bounce buffer of the session. What the operation took is thus always the result of the call that the last commit
//! stands before, and a restored process gives it to the program.

use super::control_data::{parts, RIGHTS};
use super::message::{self, Header, Vectors, CONTROL, CONTROL_LEN, DATA, DATA_LEN, HEAD, NAME, NAME_LEN};
use super::{credentials, messages, notifications, offsets, processor_timers, unseen};
use crate::children::sending;
use crate::commit::{commit, commit_before_call};
use crate::dispatch::{interruptible, native, visible, Call};
use crate::history;
use crate::inputs;
use crate::mutant::without;
use crate::noted::records;
use crate::operation::{self, is_nonblocking, is_ready, knows_nowait, wait_ready, Operation, POLLIN};
use crate::own_faults;
use crate::ring::{op, Entry};
use crate::shared_files;
use crate::state::Engine;
use crate::sys::{err, nr};
use crate::thread::Thread;
use crate::undo;
use crate::unnamed;
use crate::user;
use core::sync::atomic::Ordering::*;
use outlast_image::descriptor::descriptor_kind as kind;
use outlast_image::mutant::Mutant;

const SOL_SOCKET: u64 = 1;
const SO_RCVTIMEO: u64 = 20;
pub const SO_SNDTIMEO: u64 = 21;
const MSG_PEEK: u64 = 2;
const MSG_TRUNC: u64 = 0x20;
const MSG_DONTWAIT: u64 = 0x40;
const MSG_WAITALL: u64 = 0x100;
const MSG_ERRQUEUE: u64 = 0x2000;
const RWF_NOWAIT: u32 = 8;
/// Bytes of one record of a signalfd, which begins with the signal.
const RECORD: i64 = 128;
const ACCEPT_DONTWAIT: u16 = 2;

pub fn serve(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    let fd = call.fd();
    match (call.nr, e.fds.kind(fd)) {
        // Nothing is consumed: who waits for a page that nobody brings faults again.
        _ if own_faults::is_read(fd) => own_faults::messages::read(e, t, call),
        // Files have no input that could be consumed; only their offset moves.
        (_, kind::UNKNOWN) | (nr::PREAD64 | nr::PREADV, _) | (55, _) => interruptible(t, call),
        (_, kind::CHARACTER) => interruptible(t, call),
        (_, kind::REGULAR) if shared_files::moves(e, call) => shared_files::alone(e, t, |e, _| {
            offsets::note_moved(e, call);
            native(call)
        }),
        (_, kind::REGULAR | kind::DIRECTORY | kind::BLOCK) => {
            offsets::note_moved(e, call);
            interruptible(t, call)
        }
        (nr::READ | nr::READV | nr::RECVFROM | nr::RECVMSG | nr::ACCEPT | nr::ACCEPT4, _) => consume(e, t, call, call),
        (nr::RECVMMSG, _) => messages::receive(e, t, call),
        _ => visible(e, t, call),
    }
}

fn message_flags(call: &Call) -> u64 {
    match call.nr {
        nr::RECVFROM => call.args[3],
        nr::RECVMSG => call.args[2],
        _ => 0,
    }
}

/// Makes the call. `whole` is what the program called, of which it may be a part.
pub fn consume(e: &mut Engine, t: &mut Thread, call: &Call, whole: &Call) -> i64 {
    let flags = message_flags(call);
    let fd = call.fd();
    loop {
        if let Some(r) = inputs::serve_again(e, call) {
            return r;
        }
        if flags & (MSG_PEEK | MSG_ERRQUEUE) != 0 || without(Mutant::InputCommit) {
            return peek(e, t, call, flags);
        }
        let source = inputs::source_of(e, call);
        // A noted read that does not wait need not ask first.
        let asks = source.is_none() || !inputs::has_room(e) || !knows_nowait(e.fds.kind(fd));
        if asks && !is_ready(fd, POLLIN) {
            if let Some(r) = wait(e, t, fd, flags) {
                return r;
            }
        }
        // While it waited another thread may have read, or committed. A commit makes room.
        if source.is_some() && !inputs::has_room(e) && commit_before_call(e) == 0 {
            return interruptible(t, call);
        }
        if let Some(source) = source.filter(|_| inputs::has_room(e)) {
            match inputs::take(e, t, call, source) {
                err::EAGAIN => {}
                r => return r,
            }
            if let Some(r) = wait(e, t, fd, flags) {
                return r;
            }
            continue;
        }
        history::lose(e);
        if unseen::chosen(e) {
            return interruptible(t, call);
        }
        let seq = commit(e, whole.pending(operation::kind(e)));
        if seq == 0 {
            return interruptible(t, call);
        }
        let mut operation = Operation::new(seq);
        let r = finish(e, t, call, &mut operation);
        if r != err::EAGAIN || flags & MSG_DONTWAIT != 0 || is_nonblocking(fd) {
            return r;
        }
    }
}

/// Makes a call that takes nothing. Where it waits it does so before, as others do: the kernel would count the socket's time-out from the
/// beginning again when the wait is cut short.
fn peek(e: &mut Engine, t: &mut Thread, call: &Call, flags: u64) -> i64 {
    if flags & (MSG_PEEK | MSG_ERRQUEUE | MSG_WAITALL) != MSG_PEEK {
        return interruptible(t, call);
    }
    let mut at_once = *call;
    at_once.args[if call.nr == nr::RECVMSG { 2 } else { 3 }] |= MSG_DONTWAIT;
    loop {
        match interruptible(t, &at_once) {
            err::EAGAIN => {}
            r => return r,
        }
        if let Some(r) = wait(e, t, call.fd(), flags) {
            return r;
        }
    }
}

/// Waits for input. `Some`: the call's result, as there is none.
fn wait(e: &mut Engine, t: &mut Thread, fd: i32, flags: u64) -> Option<i64> {
    if flags & MSG_DONTWAIT != 0 || is_nonblocking(fd) {
        return Some(err::EAGAIN);
    }
    let is_terminal = e.fds.kind(fd) == kind::TERMINAL;
    let timeout = if is_terminal { terminal_timeout(fd) } else { socket_timeout(e, fd, SO_RCVTIMEO) };
    match wait_ready(t, fd, POLLIN, timeout) {
        0 => Some(if is_terminal { 0 } else { err::EAGAIN }),
        r if err::is(r) => Some(r),
        _ => None,
    }
}

/// A terminal with VMIN 0 answers a read after VTIME tenths of a second at the latest; -1: no such limit.
fn terminal_timeout(fd: i32) -> i64 {
    let mut termios = [0u8; 64];
    // SAFETY: TCGETS writes 36 bytes.
    let r = unsafe { crate::sys::syscall!(nr::IOCTL, fd, 0x5401, termios.as_mut_ptr()) };
    let local = u32::from_le_bytes([termios[12], termios[13], termios[14], termios[15]]);
    // c_line at 16, c_cc from 17: VTIME is 5, VMIN is 6.
    match (r, local & 2 != 0, termios[17 + 6]) {
        (0, false, 0) => termios[17 + 5] as i64 * 100,
        _ => -1,
    }
}

/// SO_RCVTIMEO or SO_SNDTIMEO in milliseconds; -1: none.
pub fn socket_timeout(e: &mut Engine, fd: i32, option: u64) -> i64 {
    if e.fds.kind(fd) != kind::SOCKET {
        return -1;
    }
    let (mut time, mut len) = ([0u64; 2], 16u32);
    // SAFETY: getsockopt writes at most 16 bytes.
    let r = unsafe { crate::sys::syscall!(nr::GETSOCKOPT, fd, SOL_SOCKET, option, time.as_mut_ptr(), &raw mut len) };
    if r != 0 || time == [0, 0] {
        return -1;
    }
    (time[0] * 1000 + time[1].div_ceil(1000)) as i64
}

/// Does the operation that a commit stands before, or takes its result from a dead predecessor, and gives what came in
/// to the program. Called by [`consume`], and by a restore.
pub fn finish(e: &mut Engine, t: &mut Thread, call: &Call, operation: &mut Operation) -> i64 {
    let r = take(e, t, call, operation);
    unnamed::changed(e, call.fd());
    if r == err::EINTR && t.pending.load(Acquire) != 0 {
        t.interrupted = 1;
    }
    r
}

fn take(e: &mut Engine, t: &mut Thread, call: &Call, operation: &mut Operation) -> i64 {
    let fd = call.fd();
    let a = call.args;
    match call.nr {
        nr::READ => {
            let r = run_read(e, operation, fd, a[2].min(DATA_LEN));
            if r > 0 && !e.queue.is_empty() && records::gives_signals(fd) {
                e.queue.take_records(bounced(r as u64), t.place);
            }
            if r > 0 && r % RECORD == 0 && e.fds.kind(fd) == kind::ANONYMOUS && records::gives_signals(fd) {
                for signal in bounced(r as u64).chunks_exact(RECORD as usize).map(|record| record[0].into()) {
                    sending::note_taken(signal);
                    processor_timers::delivered(e, signal);
                }
            }
            if r > 0 && notifications::any(e) && records::gives_signals(fd) {
                notifications::delivered_records(e, bounced(r as u64));
            }
            give(r, |n| user::write_bytes(a[1], bounced(n)))
        }
        nr::READV => {
            let Some(v) = Vectors::new(a[1], a[2]) else { return err::EFAULT };
            let r = run_read(e, operation, fd, v.total.min(DATA_LEN));
            give(r, |n| v.spread(DATA, n))
        }
        nr::RECVFROM => receive_from(e, operation, call),
        nr::RECVMSG => receive_message(e, operation, call),
        nr::RECVMMSG => messages::finish_receiving(e, call, operation),
        nr::ACCEPT | nr::ACCEPT4 => accept(e, t, operation, call),
        _ => err::ENOSYS,
    }
}

fn bounced(n: u64) -> &'static [u8] {
    // SAFETY: `n` is a result for a request of at most DATA_LEN bytes.
    unsafe { core::slice::from_raw_parts(DATA as *const u8, n.min(DATA_LEN) as usize) }
}

fn give(r: i64, write: impl FnOnce(u64) -> bool) -> i64 {
    if r > 0 && !write(r as u64) {
        return err::EFAULT;
    }
    r
}

fn run_read(e: &mut Engine, operation: &mut Operation, fd: i32, len: u64) -> i64 {
    let entry = Entry {
        opcode: op::READ,
        fd,
        addr: DATA,
        len: len as u32,
        off: !0,
        op_flags: RWF_NOWAIT,
        ..Default::default()
    };
    let nowait = knows_nowait(e.fds.kind(fd));
    let r = operation.run(e, if nowait { entry } else { Entry { op_flags: 0, ..entry } });
    if r == err::EOPNOTSUPP && nowait {
        return operation.run(e, Entry { op_flags: 0, ..entry });
    }
    r
}

/// Receives up to `len` bytes with up to `control_len` bytes of control data; the header that a predecessor's kernel
/// filled is left as it is.
fn receive(e: &mut Engine, operation: &mut Operation, fd: i32, flags: u64, [len, control_len]: [u64; 2]) -> i64 {
    if !operation.was_found() {
        let header = Header {
            name: NAME,
            name_len: NAME_LEN,
            vectors: Vectors::bounce(len),
            count: 1,
            control: CONTROL,
            control_len,
            flags: 0,
        };
        // SAFETY: the header lies at the start of the bounce buffer.
        unsafe { (HEAD as *mut Header).write(header) };
    }
    let entry = Entry {
        opcode: op::RECVMSG,
        fd,
        addr: HEAD,
        len: 1,
        op_flags: (flags & !MSG_WAITALL | MSG_DONTWAIT) as u32,
        ..Default::default()
    };
    operation.run(e, entry)
}

fn received_header() -> Header {
    // SAFETY: written by the kernel or a predecessor's kernel; plain integers.
    unsafe { (HEAD as *const Header).read_volatile() }
}

fn receive_from(e: &mut Engine, operation: &mut Operation, call: &Call) -> i64 {
    let [fd, buf, len, flags, name, name_len] = call.args;
    let want = len.min(DATA_LEN);
    let r = receive(e, operation, fd as i32, flags, [want, 0]);
    if r < 0 {
        return r;
    }
    let n = (r as u64).min(want);
    if n > 0 && !user::write_bytes(buf, bounced(n)) {
        return err::EFAULT;
    }
    if name != 0 && name_len != 0 && !give_name(name, name_len, received_header().name_len as u32) {
        return err::EFAULT;
    }
    if flags & MSG_TRUNC != 0 {
        r
    } else {
        (r as u64).min(len) as i64
    }
}

fn give_name(name: u64, name_len: u64, actual: u32) -> bool {
    let Some(room) = user::read::<u32>(name_len) else { return false };
    let n = room.min(actual).min(NAME_LEN as u32) as usize;
    // SAFETY: the name lies in the bounce buffer.
    let bytes = unsafe { core::slice::from_raw_parts(NAME as *const u8, n) };
    user::write_bytes(name, bytes) && user::write(name_len, &actual)
}

pub fn receive_message(e: &mut Engine, operation: &mut Operation, call: &Call) -> i64 {
    let [fd, at, flags, ..] = call.args;
    let Some(mut header) = user::read::<Header>(at) else { return err::EFAULT };
    let Some(v) = Vectors::new(header.vectors, header.count) else { return err::EINVAL };
    let control_len = header.control_len.min(CONTROL_LEN);
    let r = receive(e, operation, fd as i32, flags, [v.total.min(DATA_LEN), control_len]);
    if r < 0 {
        return r;
    }
    let got = received_header();
    let n = (r as u64).min(v.total.min(DATA_LEN));
    let control = got.control_len.min(control_len) as usize;
    // SAFETY: control data lies in the bounce buffer.
    let bytes = unsafe { core::slice::from_raw_parts(CONTROL as *const u8, control) };
    note_passed_descriptors(e, bytes);
    let name_room = (header.name_len as u32).min(NAME_LEN as u32).min(got.name_len as u32) as usize;
    // SAFETY: the name lies in the bounce buffer.
    let name = unsafe { core::slice::from_raw_parts(NAME as *const u8, name_room) };
    let fits = (n == 0 || v.spread(DATA, n))
        && (control == 0 || user::write_bytes(header.control, bytes))
        && (header.name == 0 || user::write_bytes(header.name, name));
    if !fits {
        return err::EFAULT;
    }
    credentials::received(header.control, control as u64);
    if header.name != 0 {
        header.name_len = got.name_len & 0xffff_ffff;
    }
    header.control_len = control as u64;
    header.flags = got.flags & 0xffff_ffff;
    if !user::write(at, &header) {
        return err::EFAULT;
    }
    r
}

/// Bytes of one `struct mmsghdr`.
pub const MESSAGE_LEN: u64 = 64;

/// Takes note of what arrived with the message whose header the kernel filled at `at`.
pub fn note_received(e: &mut Engine, at: u64) {
    let Some(header) = user::read::<Header>(at) else { return };
    // The kernel passes 253 descriptors at most.
    let mut control = [0; 2048];
    let control = &mut control[..header.control_len.min(2048) as usize];
    if user::read_bytes(header.control, control) {
        note_passed_descriptors(e, control);
        credentials::received(header.control, header.control_len);
    }
}

/// Descriptors that arrived with the message.
fn note_passed_descriptors(e: &mut Engine, control: &[u8]) {
    for (_, data) in parts(control).filter(|(kind, _)| *kind == RIGHTS) {
        for fd in control[data].chunks_exact(4) {
            let fd = i32::from_le_bytes(fd.try_into().unwrap_or([0xff; 4]));
            e.fds.opened(fd as i64);
            undo::share(e, fd);
        }
    }
}

fn accept(e: &mut Engine, t: &mut Thread, operation: &mut Operation, call: &Call) -> i64 {
    let [fd, name, name_len, flags, ..] = call.args;
    let flags = if call.nr == nr::ACCEPT4 { flags } else { 0 };
    // SAFETY: the kernel writes name and length into the bounce buffer.
    let len = message::HEAD as *mut u32;
    if !operation.was_found() {
        unsafe { len.write(NAME_LEN as u32) };
    }
    let entry = Entry {
        opcode: op::ACCEPT,
        fd: fd as i32,
        ioprio: ACCEPT_DONTWAIT,
        addr: NAME,
        off: message::HEAD,
        op_flags: flags as u32,
        ..Default::default()
    };
    let mut r = operation.run(e, entry);
    if r == err::EINVAL {
        // Before 6.10 there is no ACCEPT_DONTWAIT.
        r = operation.run(e, Entry { ioprio: 0, ..entry });
    }
    if r == err::EINTR {
        t.interrupted = 1;
    }
    if r >= 0 {
        e.fds.opened(r);
        // SAFETY: as above.
        if name != 0 && name_len != 0 && !give_name(name, name_len, unsafe { len.read_volatile() }) {
            return err::EFAULT;
        }
    }
    r
}
