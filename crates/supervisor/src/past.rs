//! What a program that goes back to an older generation is to meet again: what it has read and sent since, from the history in its session.

use crate::session::Session;
use outlast_image::history::{kind, record, History, LEN};
use outlast_image::layout::{session, PAGE};
use rustix::io::{pread, pwrite, Errno};
use std::mem::offset_of;

/// More inputs, or more bytes, are not met again: they have to find room beside what the generation itself holds.
const MOST_INPUTS: usize = 1024;
const MOST_BYTES: u64 = 2 << 20;

/// Records, from one position up to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Past {
    from: u64,
    until: u64,
    /// How many of them are inputs.
    pub inputs: usize,
    /// Bytes that were sent.
    pub sent: u64,
}

impl Past {
    /// All since the commit `seq`. None: there is nothing, or not all of it is kept.
    pub fn since(session: &Session, seq: u64) -> Option<Self> {
        let word = |at: usize| -> Option<u64> {
            let mut bytes = [0; 8];
            let n = pread(session.file(), &mut bytes, session::HISTORY + at as u64).ok()?;
            (n == 8).then(|| u64::from_le_bytes(bytes))
        };
        let (begin, end) = (word(offset_of!(History, begin))?, word(offset_of!(History, end))?);
        let mut ring = vec![0; LEN as usize];
        let mut read = 0;
        while read < ring.len() {
            match pread(session.file(), &mut ring[read..], session::HISTORY + PAGE + read as u64) {
                Ok(0) | Err(_) => return None,
                Ok(n) => read += n,
            }
        }
        find(&ring, (begin, end), seq)
    }

    /// The program that is about to be restored meets it again.
    pub fn give(self, session: &Session, number: u64) -> Result<(), Errno> {
        for (at, value) in [
            (offset_of!(History, from), self.from),
            (offset_of!(History, until), self.until),
            (offset_of!(History, number), number),
        ] {
            write(session, at, value)?;
        }
        Ok(())
    }

    /// It meets nothing again.
    pub fn withhold(session: &Session) {
        // Where there is no room to write it there is no room for a history either.
        let _ = write(session, offset_of!(History, number), 0);
    }
}

fn write(session: &Session, at: usize, value: u64) -> Result<(), Errno> {
    match pwrite(session.file(), &value.to_le_bytes(), session::HISTORY + at as u64)? {
        8 => Ok(()),
        _ => Err(Errno::NOSPC),
    }
}

/// The program may have written anything there.
fn find(ring: &[u8], (begin, end): (u64, u64), seq: u64) -> Option<Past> {
    if begin > end || end - begin > LEN {
        return None;
    }
    let (mut at, mut past) = (begin, None::<Past>);
    while at < end {
        let record = record(ring, at, end)?;
        if record.kind != kind::NOTHING && (record.seq >= seq || past.is_some()) {
            // If the oldest is one of them, there may have been others before it.
            if past.is_none() && at == begin && begin != 0 {
                return None;
            }
            let past = past.get_or_insert(Past { from: at, until: end, inputs: 0, sent: 0 });
            match record.kind {
                kind::INPUT => past.inputs += 1,
                _ => past.sent += u64::from(record.len),
            }
        }
        at += record.room();
    }
    past.filter(|past| past.inputs <= MOST_INPUTS && past.until - past.from <= MOST_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_image::history::{skipped, Record, HEAD};

    /// A ring with records of that many bytes, each behind a commit of its own; where it begins and ends.
    fn ring(lens: &[u32]) -> (Vec<u8>, (u64, u64)) {
        let (mut ring, mut begin, mut end) = (vec![0; LEN as usize], 0, 0);
        let mut starts = Vec::new();
        for (number, len) in lens.iter().enumerate() {
            let kind = if number % 2 == 0 { kind::INPUT } else { kind::OUTPUT };
            let head = Record { kind, len: *len, seq: 10 + number as u64, ..Record::default() };
            let skip = skipped(end, head.room());
            if skip != 0 {
                let place = (end % LEN) as usize;
                ring[place..place + 8].copy_from_slice(bytemuck::bytes_of(&[kind::NOTHING, skip as u32 - 8]));
                starts.push(end);
                end += skip;
            }
            let place = (end % LEN) as usize;
            ring[place..place + HEAD as usize].copy_from_slice(bytemuck::bytes_of(&head));
            starts.push(end);
            end += head.room();
            begin = *starts.iter().find(|start| end - **start <= LEN).expect("one");
        }
        (ring, (begin, end))
    }

    #[test]
    fn what_was_met_since_a_commit_is_found_if_all_of_it_is_there() {
        let (bytes, places) = ring(&[5, 0, 100, 3]);
        let found = |seq| find(&bytes, places, seq).map(|past| (past.inputs, past.sent));
        assert_eq!((found(10), found(11), found(12)), (Some((2, 3)), Some((1, 3)), Some((1, 3))));
        assert_eq!((found(13), found(14)), (Some((0, 3)), None));
        // What is before it was given up.
        let second = HEAD + 8;
        assert_eq!(find(&bytes, (second, places.1), 11), None);
        assert_eq!(find(&bytes, (second, places.1), 12).map(|past| past.inputs), Some(1));
    }

    #[test]
    fn a_ring_that_has_come_round_is_read_across_its_end() {
        let lens = vec![100_000; 100];
        let (bytes, places) = ring(&lens);
        assert!(places.0 > 0 && places.1 > LEN);
        let past = find(&bytes, places, 10 + 90).expect("there");
        assert_eq!((past.inputs, past.sent), (5, 500_000));
        assert_eq!(find(&bytes, places, 10 + 50), None);
        // All of it is more than is given back.
        assert_eq!(find(&bytes, places, 10 + 62), None);
    }

    #[test]
    fn nonsense_is_nothing_to_be_met_again() {
        let (bytes, (begin, end)) = ring(&[5, 0, 100, 3]);
        for places in [(end, begin), (begin, end + 8), (8, end), (begin, u64::MAX), (u64::MAX - 7, u64::MAX)] {
            assert_eq!(find(&bytes, places, 10), None, "{places:?}");
        }
        for at in 0..end as usize {
            let mut bytes = bytes.clone();
            bytes[at] ^= 0x80;
            let _ = find(&bytes, (begin, end), 10);
        }
        assert_eq!(find(&[], (0, 64), 10), None);
    }
}
