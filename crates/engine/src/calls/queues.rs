//! Message queues of System V and POSIX, and semaphores of System V: each message is sent and taken once, and semaphores change once.
//! A call is made without waiting, behind a commit; the wait between two tries changes nothing.

use super::message::DATA;
use super::semaphore_undo::{self, SEM_UNDO};
use super::{notifications, objects};
use crate::commit::commit;
use crate::dispatch::{interruptible, native, visible, Call};
use crate::noted::queue::{
    self, Change, CHANGES, IPC_NOWAIT, LONGEST, MQ_RECEIVE, MQ_SEND, MSGRCV, MSGSND, SEMOP, SEMTIMEDOP,
};
use crate::operation::{is_nonblocking, wait_ready, Operation, POLLIN, POLLOUT};
use crate::state::Engine;
use crate::sys::{err, nr, syscall};
use crate::thread::Thread;
use crate::user;
use core::sync::atomic::Ordering::Acquire;
use outlast_image::context::pending_kind;

const SEMGET: u64 = 64;
const SEMCTL: u64 = 66;
const MSGGET: u64 = 68;
const MSGCTL: u64 = 71;
const MQ_OPEN: u64 = 240;
const MQ_UNLINK: u64 = 241;
const MQ_GETSETATTR: u64 = 245;

const IPC_RMID: u64 = 0;
const IPC_SET: u64 = 1;
const SETVAL: u64 = 16;
const SETALL: u64 = 17;
const IPC_64: u64 = 0x100;
const E2BIG: i64 = -7;
const ENOMSG: i64 = -42;
const EIDRM: i64 = -43;
const IPC_EXCL: u64 = 0o2000;
const O_EXCL: u64 = 0o200;
/// Between two tries to send what does not fit: nobody tells when there is room.
const PAUSE: [u64; 2] = [0, 1_000_000];

/// Is it a call on queues or semaphores?
pub fn is_one(nr: u64) -> bool {
    moves(nr) || matches!(nr, SEMGET | SEMCTL | MSGGET | MSGCTL | MQ_OPEN | MQ_UNLINK | MQ_GETSETATTR)
}

/// Does it send, take or change, so that it must be made once?
pub fn moves(nr: u64) -> bool {
    matches!(nr, SEMOP | SEMTIMEDOP | MSGSND | MSGRCV | MQ_SEND | MQ_RECEIVE)
}

/// Does it take a message, which lies where other inputs do?
pub fn takes(nr: u64) -> bool {
    matches!(nr, MSGRCV | MQ_RECEIVE)
}

pub fn serve(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    let a = call.args;
    match call.nr {
        SEMCTL if !matches!(a[2] & !IPC_64, IPC_RMID | IPC_SET | SETVAL | SETALL) => native(call),
        MSGCTL if !matches!(a[1] & !IPC_64, IPC_RMID | IPC_SET) => native(call),
        MQ_GETSETATTR if a[1] == 0 => native(call),
        _ if objects::makes(call) => objects::serve(e, t, call),
        nr if moves(nr) && fits(call) => {
            let r = once(e, t, call);
            notifications::look(e);
            r
        }
        SEMCTL => {
            semaphores_set(e, call);
            visible(e, t, call)
        }
        _ => visible(e, t, call),
    }
}

/// Before the commit, so that whoever is resumed from it undoes nothing of what is set.
fn semaphores_set(e: &mut Engine, call: &Call) {
    let [set, number, command, ..] = call.args;
    match command & !IPC_64 {
        SETVAL => semaphore_undo::forget(e, set, Some(number)),
        SETALL | IPC_RMID => semaphore_undo::forget(e, set, None),
        _ => {}
    }
}

/// The result of a call that a dead predecessor may have made before; `r` is what making it again returned.
pub fn repeated(e: &mut Engine, call: &Call, r: i64) -> i64 {
    let a = call.args;
    let without = |i: usize, flag: u64| {
        let mut args = a;
        args[i] &= !flag;
        native(&Call { nr: call.nr, args })
    };
    let r = match (call.nr, r) {
        (SEMCTL, err::EINVAL | EIDRM) if a[2] & !IPC_64 == IPC_RMID => 0,
        (MSGCTL, err::EINVAL | EIDRM) if a[1] & !IPC_64 == IPC_RMID => 0,
        (MQ_UNLINK, err::ENOENT) => 0,
        // Made by the predecessor, as nobody else has had the time to.
        (SEMGET, err::EEXIST) => without(2, IPC_EXCL),
        (MSGGET, err::EEXIST) => without(1, IPC_EXCL),
        (MQ_OPEN, err::EEXIST) => without(1, O_EXCL),
        _ => r,
    };
    if call.nr == MQ_OPEN {
        e.fds.returned(r);
    }
    r
}

/// Has the note room for it?
fn fits(call: &Call) -> bool {
    match call.nr {
        SEMOP | SEMTIMEDOP => (1..=CHANGES as u64).contains(&call.args[2]),
        // MSG_COPY takes nothing.
        MSGRCV => call.args[2] <= LONGEST && call.args[4] & 0o40000 == 0,
        MQ_RECEIVE => call.args[2] <= LONGEST,
        _ => true,
    }
}

fn once(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    loop {
        let seq = commit(e, call.pending(pending_kind::NOTED));
        if seq == 0 {
            return interruptible(t, call);
        }
        match finish(e, t, call, &mut Operation::new(seq)) {
            err::EAGAIN => {}
            r => return r,
        }
        if let Some(r) = wait(t, call) {
            return r;
        }
    }
}

/// The changes to semaphores that a call names.
fn changes(call: &Call, room: &mut [Change; CHANGES]) -> Option<usize> {
    if !matches!(call.nr, SEMOP | SEMTIMEDOP) {
        return Some(0);
    }
    let count = (call.args[2] as usize).min(CHANGES);
    for (i, change) in room[..count].iter_mut().enumerate() {
        *change = user::read(call.args[1] + i as u64 * 6)?;
    }
    Some(count)
}

/// The changes to semaphores that a dead predecessor made by the call which the commit stands before.
pub fn made<'a>(call: &Call, operation: &Operation, room: &'a mut [Change; CHANGES]) -> &'a [Change] {
    let count = if matches!(call.nr, SEMOP | SEMTIMEDOP) { changes(call, room).unwrap_or(0) } else { 0 };
    let is_made = operation.found().map_or_else(|| queue::was_made(operation.id()), |r| r == 0);
    &room[..if is_made { count } else { 0 }]
}

/// Does what the commit stands before, unless a dead predecessor did, and gives what came to the program. EAGAIN: it has to wait.
pub fn finish(e: &mut Engine, t: &mut Thread, call: &Call, operation: &mut Operation) -> i64 {
    let mut room = [[0; 3]; CHANGES];
    let Some(count) = changes(call, &mut room) else { return err::EFAULT };
    let r = loop {
        let r = operation.perform(e, |_, id| queue::make(id, call, &room[..count]));
        if r != err::EINTR {
            break r;
        }
        if t.pending.load(Acquire) != 0 {
            t.interrupted = 1;
            return r;
        }
    };
    if r == 0 && matches!(call.nr, SEMOP | SEMTIMEDOP) {
        semaphore_undo::changed(e, call.args[0], &room[..count]);
    }
    if r < 0 || !takes(call.nr) {
        return r;
    }
    let is_posix = call.nr == MQ_RECEIVE;
    let len = (r as u64).min(LONGEST) + if is_posix { 0 } else { 8 };
    // SAFETY: the bounce buffer is longer.
    let bytes = unsafe { core::slice::from_raw_parts(DATA as *const u8, len as usize) };
    let given = user::write_bytes(call.args[1], bytes)
        && (!is_posix || call.args[3] == 0 || user::write(call.args[3], &queue::priority()));
    if given {
        r
    } else {
        err::EFAULT
    }
}

/// Waits until it is worth another try. `Some`: the call's result.
fn wait(t: &mut Thread, call: &Call) -> Option<i64> {
    let a = call.args;
    let r = match call.nr {
        MSGSND if a[3] & IPC_NOWAIT != 0 => err::EAGAIN,
        MSGRCV if a[4] & IPC_NOWAIT != 0 => ENOMSG,
        MQ_SEND | MQ_RECEIVE if is_nonblocking(call.fd()) => err::EAGAIN,
        MSGSND => {
            // Each pause is one of its own.
            t.countdown.forget();
            interruptible(t, &Call { nr: nr::NANOSLEEP, args: [PAUSE.as_ptr() as u64, 0, 0, 0, 0, 0] })
        }
        MSGRCV => return wait_for_message(t, call),
        MQ_SEND | MQ_RECEIVE => {
            let events = if call.nr == MQ_SEND { POLLOUT } else { POLLIN };
            match wait_ready(t, call.fd(), events, time_left(a[4])) {
                0 => err::ETIMEDOUT,
                r => r,
            }
        }
        _ => return wait_for_semaphores(t, call),
    };
    (r < 0).then_some(r)
}

/// Milliseconds until a time of CLOCK_REALTIME; -1: for ever.
fn time_left(at: u64) -> i64 {
    let Some([s, ns]) = (if at == 0 { None } else { user::read::<[i64; 2]>(at) }) else { return -1 };
    let mut now = [0i64; 2];
    // SAFETY: the kernel writes 16 bytes.
    unsafe { syscall!(nr::CLOCK_GETTIME, 0, now.as_mut_ptr()) };
    let left = (s - now[0]).saturating_mul(1000).saturating_add((ns - now[1] + 999_999) / 1_000_000);
    left.clamp(0, i32::MAX as i64)
}

/// A message that is longer than there is room for stays where it is. One without any text is taken at once.
fn wait_for_message(t: &mut Thread, call: &Call) -> Option<i64> {
    const MSG_NOERROR: u64 = 0o10000;
    let [queue, at, _, kind, flags, _] = call.args;
    t.poll = 0;
    let args = [queue, (&raw mut t.poll) as u64, 0, kind, flags & !MSG_NOERROR, 0];
    match interruptible(t, &Call { nr: MSGRCV, args }) {
        E2BIG => None,
        0 if user::write(at, &t.poll) => Some(0),
        0 => Some(err::EFAULT),
        r => Some(r),
    }
}

/// What is done and undone in one stroke waits as long as what is done alone.
fn wait_for_semaphores(t: &mut Thread, call: &Call) -> Option<i64> {
    let mut room = [[0; 3]; CHANGES];
    let Some(count) = changes(call, &mut room) else { return Some(err::EFAULT) };
    let mut list = [[0u16; 3]; 2 * CHANGES];
    for (i, [number, change, flags]) in room[..count].iter().copied().enumerate() {
        if flags & IPC_NOWAIT as u16 != 0 {
            // Which of the changes would have to wait decides: the kernel knows.
            return Some(err::EAGAIN);
        }
        list[i] = [number, change, flags & !SEM_UNDO];
        list[2 * count - 1 - i] = [number, (change as i16).wrapping_neg() as u16, 0];
    }
    // To wait for zero again would be to wait for what the changes before it have made.
    let mut len = count;
    for i in count..2 * count {
        if list[i][1] != 0 {
            list[len] = list[i];
            len += 1;
        }
    }
    let time = if call.nr == SEMTIMEDOP { call.args[3] } else { 0 };
    let args = [call.args[0], list.as_ptr() as u64, len as u64, time, 0, 0];
    let r = interruptible(t, &Call { nr: SEMTIMEDOP, args });
    (r < 0).then_some(r)
}
