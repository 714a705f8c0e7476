//! Message queues and semaphores, which the ring knows nothing of. What a message queue, System V's or POSIX's, gives lands in the
//! session, over a mark that no message leaves; what was sent, and what was done to semaphores, is told by a second look.
//!
//! With others at the same queue or semaphore at the moment of a death the second look may err: what it sees is how many messages
//! there are, and who was there last.

use super::note::{how, note, WORDS};
use crate::calls::message::{DATA, DATA_LEN, HEAD};
use crate::dispatch::{issue, Call};
use crate::sys::{err, nr, syscall};
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

fn attempt(id: u64, call: &Call, changes: &[Change]) -> i64 {
    if matches!(call.nr, MSGRCV | MQ_RECEIVE) {
        return receive(id, call);
    }
    if note().tells(id, how::WITNESS) {
        let mut before: Look = [0; WORDS];
        before.iter_mut().zip(&note().words).for_each(|(value, word)| *value = word.load(Relaxed));
        if happened(call, changes, &before) {
            return 0;
        }
        // It is this process now that makes it, under another number perhaps: a successor asks for that.
        note().words[WORDS - 1].store(own_pid(), Relaxed);
    } else {
        note().begin(how::WITNESS, call.fd());
        note().words.iter().zip(look(call, changes)).for_each(|(word, value)| word.store(value, Relaxed));
        note().arm(id);
    }
    let mut args = call.args;
    let no_time = [0u64; 2];
    match call.nr {
        MSGSND => args[3] |= IPC_NOWAIT,
        MQ_SEND => args[4] = no_time.as_ptr() as u64,
        _ => {
            for (i, [number, change, flags]) in changes.iter().enumerate() {
                // SAFETY: a few bytes of the session that are the call's.
                unsafe { (LIST as *mut Change).add(i).write([*number, *change, flags | IPC_NOWAIT as u16]) };
            }
            args = [args[0], LIST, changes.len() as u64, 0, 0, 0];
        }
    }
    let nr = if call.nr == SEMTIMEDOP { SEMOP } else { call.nr };
    without_waiting(issue(&Call { nr, args }))
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

/// Times of the last message sent, number of messages, bytes, who sent last.
fn queue_look(queue: u64) -> [u64; 4] {
    // `struct msqid64_ds`: permissions, three times, bytes, messages, most bytes, two process ids, two spare words.
    let mut stat = [0u64; 15];
    // SAFETY: the kernel writes 120 bytes.
    unsafe { syscall!(MSGCTL, queue, IPC_STAT, stat.as_mut_ptr()) };
    [stat[6], stat[10], stat[9], stat[12] & 0xffff_ffff]
}

fn own_pid() -> u64 {
    // SAFETY: no effect.
    unsafe { syscall!(nr::GETPID) as u64 }
}

fn look(call: &Call, changes: &[Change]) -> Look {
    let mut look: Look = [0; WORDS];
    match call.nr {
        MSGSND => look[..4].copy_from_slice(&queue_look(call.args[0])),
        MQ_SEND => {
            let mut attributes = [0u64; 8];
            // SAFETY: the kernel writes 64 bytes.
            unsafe { syscall!(MQ_GETSETATTR, call.args[0], 0, attributes.as_mut_ptr()) };
            look[0] = attributes[3];
        }
        _ => {
            for (word, [number, ..]) in look.iter_mut().zip(changes) {
                // SAFETY: two questions.
                let [value, who] =
                    [GETVAL, GETPID].map(|what| unsafe { syscall!(SEMCTL, call.args[0], *number, what, 0) });
                *word = (value.max(0) as u64) << 32 | who.max(0) as u64;
            }
        }
    }
    look[WORDS - 1] = own_pid();
    look
}

/// Did it happen since the look before?
fn happened(call: &Call, changes: &[Change], before: &Look) -> bool {
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
                [now[i], before[i]].map(|word| ((word >> 32) as i64, word & 0xffff_ffff));
            who == predecessor && (who_before != predecessor || change != 0 && value == value_before + change)
        }),
    }
}
