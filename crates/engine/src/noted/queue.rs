//! Message queues and semaphores, which the ring knows nothing of. What a message queue, System V's or POSIX's, gives lands in the
//! session, over a mark that no message leaves. Whether something was sent, or done to semaphores, is told by what the kernel has read
//! ([`super::entered`]): a time, or the zeroes with which a message of System V ends. Where one ends with something else, and where there
//! was no such page, a second look tells.
//!
//! With others at the same queue or semaphore at the moment of a death the second look may err: what it sees is how many messages
//! there are, values, and who was there last.

use super::entered;
use super::note::{how, is_nothing, note, WORDS};
use crate::calls::message::{DATA, DATA_LEN, HEAD};
use crate::dispatch::{issue, native, Call};
use crate::sys::{err, nr, syscall};
use crate::user;
use core::sync::atomic::Ordering::Relaxed;

pub const SEMOP: u64 = 65;
const SEMCTL: u64 = 66;
pub const MSGSND: u64 = 69;
pub const MSGRCV: u64 = 70;
const MSGCTL: u64 = 71;
pub const SEMTIMEDOP: u64 = 220;
pub const MQ_SEND: u64 = 242;
pub const MQ_RECEIVE: u64 = 243;
const MQ_GETSETATTR: u64 = 245;

const IPC_STAT: u64 = 2;
const GETPID: u64 = 11;
const GETVAL: u64 = 12;
pub const IPC_NOWAIT: u64 = 0o4000;
const ENOMSG: i64 = -42;

/// `struct sembuf`: number, operation, flags.
pub type Change = [u16; 3];
/// Most changes in one call that the note has room for.
pub const CHANGES: usize = WORDS - 1;
/// Where the call finds them, in the session.
const LIST: u64 = HEAD;
/// Longest message that is taken.
pub const LONGEST: u64 = DATA_LEN - 8;
/// Fills the session before a message is taken.
const MARK: u8 = 0xff;
/// Where the priority of a POSIX message lands; none is as large as the mark.
const PRIORITY: *mut u32 = HEAD as *mut u32;

/// What is to be seen of a call's effect.
type Look = [u64; WORDS];

/// Makes the call without waiting, unless a dead predecessor did; EAGAIN: it would have to wait.
pub fn make(id: u64, call: &Call, changes: &[Change]) -> i64 {
    note().close(attempt(id, call, changes))
}

/// Has a dead predecessor made the call, for all that the kernel has read?
pub fn was_made(id: u64) -> bool {
    note().tells(id, how::WITNESS) && note().staged.load(Relaxed) != 0 && entered::is_read()
}

fn attempt(id: u64, call: &Call, changes: &[Change]) -> i64 {
    if matches!(call.nr, MSGRCV | MQ_RECEIVE) {
        return receive(id, call);
    }
    let mut has_begun = false;
    if note().tells(id, how::WITNESS) {
        let mut before: Look = [0; WORDS];
        before.iter_mut().zip(&note().words).for_each(|(value, word)| *value = word.load(Relaxed));
        let tells = note().staged.load(Relaxed) != 0;
        if happened(call, changes, &before, tells.then(entered::is_read)) {
            return 0;
        }
        // It is this process now that makes it, under another number perhaps: a successor asks for that.
        note().words[WORDS - 1].store(own_pid(), Relaxed);
        has_begun = !tells;
    }
    let mut args = without_patience(call, changes);
    if !has_begun {
        let before = look(call, changes);
        note().begin(how::WITNESS, call.fd());
        note().words.iter().zip(before).for_each(|(word, value)| word.store(value, Relaxed));
        let telling = if is_sure(call, changes, &before) { telling(call, &args) } else { None };
        let telling = telling.filter(|_| entered::prepare());
        note().staged.store(telling.is_some() as u64, Relaxed);
        note().arm(id);
        args = telling.unwrap_or(args);
    }
    let nr = if call.nr == SEMOP { SEMTIMEDOP } else { call.nr };
    // It waits for nothing, and nobody but the kernel may read its arguments.
    let r = native(&Call { nr, args });
    if r == err::EFAULT && note().staged.load(Relaxed) != 0 {
        // No memory for the page: nothing was done.
        note().void();
        return without_waiting(native(&Call { nr, args: without_patience(call, changes) }));
    }
    let r = without_waiting(r);
    if is_nothing(r) {
        note().void();
    }
    r
}

/// The call's arguments, such that it does not wait.
fn without_patience(call: &Call, changes: &[Change]) -> [u64; 6] {
    static NO_TIME: [u64; 2] = [0; 2];
    let mut args = call.args;
    match call.nr {
        MSGSND => args[3] |= IPC_NOWAIT,
        MQ_SEND => args[4] = NO_TIME.as_ptr() as u64,
        _ => {
            for (i, [number, change, flags]) in changes.iter().enumerate() {
                // SAFETY: a few bytes of the session that are the call's.
                unsafe { (LIST as *mut Change).add(i).write([*number, *change, flags | IPC_NOWAIT as u16]) };
            }
            args = [args[0], LIST, changes.len() as u64, NO_TIME.as_ptr() as u64, 0, 0];
        }
    }
    args
}

/// The arguments with which the call shows that the kernel has begun it; `None`: it cannot. What is sent lies in the session then.
fn telling(call: &Call, args: &[u64; 6]) -> Option<[u64; 6]> {
    let mut args = *args;
    match call.nr {
        MSGSND => {
            // Type and text; the last byte alone lies in the page.
            let before = call.args[2] + 7;
            let last: u8 = user::read(call.args[1].checked_add(before)?)?;
            args[1] = entered::PLACE - before;
            // SAFETY: the end of the bounce buffer, which is the call's.
            let copy = unsafe { core::slice::from_raw_parts_mut(args[1] as *mut u8, before as usize) };
            let has_type = user::read_bytes(call.args[1], copy) && copy.first_chunk().is_some_and(is_type);
            (last == 0 && has_type).then_some(args)
        }
        MQ_SEND => {
            // SAFETY: the bounce buffer, which is longer, is the call's.
            let copy = unsafe { core::slice::from_raw_parts_mut(DATA as *mut u8, call.args[2] as usize) };
            (args[1], args[4]) = (DATA, entered::PLACE);
            user::read_bytes(call.args[1], copy).then_some(args)
        }
        _ => {
            args[3] = entered::PLACE;
            Some(args)
        }
    }
}

fn is_type(bytes: &[u8; 8]) -> bool {
    i64::from_le_bytes(*bytes) > 0
}

/// Will the call, once it is begun, do what it is to do, as things are? It neither fails nor has to wait.
fn is_sure(call: &Call, changes: &[Change], before: &Look) -> bool {
    /// Longest message (`kernel.msgmax`), as it is unless somebody has changed that.
    const MSGMAX: u64 = 8192;
    const PRIORITIES: u64 = 32768;
    const SEMVMX: i64 = 32767;
    const F_GETFL: u64 = 3;
    const O_ACCMODE: i64 = 3;
    match call.nr {
        MSGSND => {
            let len = call.args[2];
            (1..=MSGMAX).contains(&len) && before[2].saturating_add(len) <= before[4] && before[1] < before[4]
        }
        MQ_SEND => {
            // SAFETY: no effect.
            let flags = unsafe { syscall!(nr::FCNTL, call.args[0], F_GETFL) };
            let writes = flags >= 0 && flags & O_ACCMODE != 0;
            let len = call.args[2];
            writes && call.args[3] < PRIORITIES && len <= before[2].min(LONGEST) && before[0] < before[1]
        }
        _ => values(changes, before).all(|(value, change)| match change {
            0 => value == 0,
            _ => value >= 0 && (0..=SEMVMX).contains(&(value + change)),
        }),
    }
}

/// Each change and the value that it finds, as the semaphores were; a value below 0: there is none.
fn values<'a>(changes: &'a [Change], before: &'a Look) -> impl Iterator<Item = (i64, i64)> + 'a {
    changes.iter().enumerate().map(|(i, [number, change, _])| {
        let earlier = changes[..i].iter().filter(|other| other[0] == *number);
        let value = before[i] as i64 >> 32;
        let value = if value < 0 { value } else { value + earlier.map(|other| other[1] as i16 as i64).sum::<i64>() };
        (value, *change as i16 as i64)
    })
}

/// What a call that was not to wait says when it would have to.
fn without_waiting(r: i64) -> i64 {
    match r {
        ENOMSG | err::ETIMEDOUT => err::EAGAIN,
        r => r,
    }
}

/// Takes a message into the session.
fn receive(id: u64, call: &Call) -> i64 {
    let [queue, _, room, kind, flags, _] = call.args;
    let room = room.min(LONGEST);
    note().begin(how::QUEUE, queue as i32);
    // SAFETY: the bounce buffer, which is longer, is the call's.
    unsafe {
        core::ptr::write_bytes(DATA as *mut u8, MARK, room as usize + 8);
        PRIORITY.write_volatile(u32::MAX);
        if call.nr == MSGRCV {
            (DATA as *mut u64).write_volatile(0);
        }
    }
    note().start.store(room, Relaxed);
    note().words[0].store(call.nr, Relaxed);
    note().words[1].store(bytes_in(call.nr, queue), Relaxed);
    note().arm(id);
    let no_time = [0u64; 2];
    let args = match call.nr {
        MSGRCV => [queue, DATA, room, kind, flags | IPC_NOWAIT, 0],
        _ => [queue, DATA, room, PRIORITY as u64, no_time.as_ptr() as u64, 0],
    };
    without_waiting(issue(&Call { nr: call.nr, args }))
}

/// Bytes of all messages in a queue.
fn bytes_in(call: u64, queue: u64) -> u64 {
    if call == MSGRCV {
        return queue_look(queue)[2];
    }
    // "QSIZE:129 NOTIFY:…"
    let mut text = [0u8; 80];
    // SAFETY: reads what the queue says of itself.
    let n = unsafe { syscall!(nr::PREAD64, queue, text.as_mut_ptr(), text.len(), 0) }.max(0) as usize;
    let digits = text[..n].strip_prefix(b"QSIZE:").unwrap_or(&[]);
    digits.iter().map_while(|c| (*c as char).to_digit(10)).fold(0, |n, digit| n * 10 + digit as u64)
}

/// Length of the message that a dead predecessor took; `None`: it took none.
pub fn taken() -> Option<i64> {
    let call = note().words[0].load(Relaxed);
    let queue = note().fd.load(Relaxed) as u64;
    let room = note().start.load(Relaxed).min(LONGEST) as usize;
    // SAFETY: the bounce buffer; nobody writes to it now.
    let (has_any, bytes) = unsafe {
        let head = if call == MSGRCV {
            (DATA as *const u64).read_volatile() != 0
        } else {
            PRIORITY.read_volatile() != u32::MAX
        };
        let text = if call == MSGRCV { DATA + 8 } else { DATA };
        (head, core::slice::from_raw_parts(text as *const u8, room))
    };
    if !has_any {
        return None;
    }
    // It may end with bytes that look like the mark: then the queue's own count tells.
    let least = bytes.iter().rposition(|&b| b != MARK).map_or(0, |last| last + 1);
    let gone = note().words[1].load(Relaxed).saturating_sub(bytes_in(call, queue)) as usize;
    Some(if (least..=room).contains(&gone) { gone } else { least } as i64)
}

/// The priority that came with a POSIX message.
pub fn priority() -> u32 {
    // SAFETY: a word of the session.
    unsafe { PRIORITY.read_volatile() }
}

/// Times of the last message sent, number of messages, bytes, who sent last, most bytes.
fn queue_look(queue: u64) -> [u64; 5] {
    // `struct msqid64_ds`: permissions, three times, bytes, messages, most bytes, two process ids, two spare words.
    let mut stat = [0u64; 15];
    // SAFETY: the kernel writes 120 bytes.
    unsafe { syscall!(MSGCTL, queue, IPC_STAT, stat.as_mut_ptr()) };
    [stat[6], stat[10], stat[9], stat[12] & 0xffff_ffff, stat[11]]
}

fn own_pid() -> u64 {
    // SAFETY: no effect.
    unsafe { syscall!(nr::GETPID) as u64 }
}

fn look(call: &Call, changes: &[Change]) -> Look {
    let mut look: Look = [0; WORDS];
    match call.nr {
        MSGSND => look[..5].copy_from_slice(&queue_look(call.args[0])),
        MQ_SEND => {
            let mut attributes = [0u64; 8];
            // SAFETY: the kernel writes 64 bytes.
            unsafe { syscall!(MQ_GETSETATTR, call.args[0], 0, attributes.as_mut_ptr()) };
            look[..3].copy_from_slice(&[attributes[3], attributes[1], attributes[2]]);
        }
        _ => {
            for (word, [number, ..]) in look.iter_mut().zip(changes) {
                // SAFETY: two questions.
                let [value, who] =
                    [GETVAL, GETPID].map(|what| unsafe { syscall!(SEMCTL, call.args[0], *number, what, 0) });
                *word = (value.max(-1) as u64) << 32 | who.max(0) as u64;
            }
        }
    }
    look[WORDS - 1] = own_pid();
    look
}

/// Did it happen since the look before? `entered`: has the kernel begun it, if that can be told, as of one that does what it is to do.
fn happened(call: &Call, changes: &[Change], before: &Look, entered: Option<bool>) -> bool {
    if let Some(entered) = entered {
        return entered;
    }
    let (now, predecessor) = (look(call, changes), before[WORDS - 1]);
    match call.nr {
        MSGSND => {
            let came_last = now[3] == predecessor && (before[3] != predecessor || now[0] != before[0]);
            now[1] > before[1] || came_last
        }
        MQ_SEND => now[0] > before[0],
        _ => changes.iter().enumerate().any(|(i, [number, ..])| {
            let of_this = changes.iter().filter(|other| other[0] == *number);
            let change: i64 = of_this.map(|other| other[1] as i16 as i64).sum();
            let [(value, who), (value_before, who_before)] =
                [now[i], before[i]].map(|word| (word as i64 >> 32, word & 0xffff_ffff));
            who == predecessor && (who_before != predecessor || change != 0 && value == value_before + change)
        }),
    }
}
