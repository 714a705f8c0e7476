//! A sum over the bytes that were replied on a connection since the commit: whether a recovered server replies the same.

use super::keeping::Entry;
use super::{has_room, sending, since};
use crate::control::degrade;
use crate::dispatch::Call;
use crate::state::{journal, Engine};
use outlast_image::degradation::Degradation;

/// Sums between two commits.
const SUMS: u32 = 1 << 10;

/// How many were noted since a commit.
pub struct Noted {
    count: u32,
    since: u64,
}

impl Noted {
    pub const fn new() -> Noted {
        Noted { count: 0, since: 0 }
    }
}

/// The bytes `from..to` of the call were replied.
pub fn add(e: &mut Engine, call: &Call, source: u64, from: u64, to: u64) {
    let since = since(e);
    let Some(known) = e.replies.known.find(source, since).filter(|_| to > from) else { return };
    let (mut at, mut sum, mut expected) = (known.replied, known.sum, known.expected);
    known.replied += to - from;
    let (left, fd) = (known.left, known.fd);
    let mut differs = false;
    let store = e.store();
    let is_read = !sum.is_lost
        && sending::each_piece(call, from, to, &mut |bytes| {
            let until = (expected.0.saturating_sub(at)).min(bytes.len() as u64) as usize;
            let (before, after) = bytes.split_at(until);
            sum.crc = store.checksum(sum.crc, before);
            at += until as u64;
            if expected.0 != 0 && at == expected.0 {
                differs |= sum.crc != expected.1;
                expected = (0, 0);
            }
            sum.crc = store.checksum(sum.crc, after);
            at += after.len() as u64;
        });
    sum.is_lost = !is_read;
    if differs {
        degrade(Degradation::ReplyDiffers);
    }
    let Some(known) = e.replies.known.find(source, since) else { return };
    (known.sum, known.expected) = (sum, if is_read { expected } else { (0, 0) });
    if e.replies.sums.since != since {
        e.replies.sums = Noted { count: 0, since };
    }
    // What was replied before is noted already.
    if is_read && left == 0 && e.replies.sums.count < SUMS && has_room(e) {
        e.replies.sums.count += 1;
        let entry = Entry { source, fd, expected_at: at, expected: sum.crc, ..Entry::NOTHING };
        let _ = e.store().journal_append(journal::REPLY_SUM, bytemuck::bytes_of(&entry));
    }
}
