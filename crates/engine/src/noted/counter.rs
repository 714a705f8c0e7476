//! Writes to an eventfd: /proc shows how far it has counted, before and after.

use super::note::{how, note};
use crate::dispatch::{issue, Call};
use crate::proc;
use crate::ring::{op, Entry};
use crate::sys::nr;
use crate::user;
use core::sync::atomic::Ordering::Relaxed;

pub const NAME: &[u8] = b"anon_inode:[eventfd]";
const COUNT: &[u8] = b"eventfd-count:";

/// Where the eventfd stands; `None`: it is none, or /proc does not say.
fn count(fd: i32) -> Option<u64> {
    let mut text = [0u8; 512];
    let text = proc::info(fd, &mut text);
    let at = text.windows(COUNT.len()).position(|w| w == COUNT)? + COUNT.len();
    let digits = text[at..].iter().skip_while(|c| **c == b' ').map_while(|c| (*c as char).to_digit(16));
    Some(digits.fold(0, |n, d| n << 4 | d as u64))
}

/// Adds to the counter; `None`: `entry` is nothing that this mechanism knows.
pub fn write(id: u64, entry: &Entry) -> Option<i64> {
    let mut name = [0u8; 32];
    if entry.opcode != op::WRITE || entry.len != 8 || proc::link(entry.fd, &mut name) != NAME {
        return None;
    }
    let (added, before) = (user::read::<u64>(entry.addr)?, count(entry.fd)?);
    note().begin(how::COUNTER, entry.fd);
    note().words[0].store(before, Relaxed);
    note().words[1].store(added, Relaxed);
    note().arm(id);
    Some(issue(&Call { nr: nr::WRITE, args: [entry.fd as u64, entry.addr, 8, 0, 0, 0] }))
}

/// Did a dead predecessor add? Whoever reads the counter in between hides it.
pub fn added() -> Option<i64> {
    let [before, added, ..] = &note().words;
    let now = count(note().fd.load(Relaxed) as i32)?;
    (added.load(Relaxed) > 0 && now >= before.load(Relaxed).saturating_add(added.load(Relaxed))).then_some(8)
}
