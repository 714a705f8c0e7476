//! What of replies outlives the process: entries of the journal, and what is left of them in commits.

use super::known::{Known, Sum};
use super::{are_owed, caught_up, count, shared, since, Refused, OWED};
use crate::call_filters;
use crate::control::degrade;
use crate::dispatch;
use crate::mutant::without;
use crate::scratch;
use crate::state::{journal, object, Engine};
use bytemuck::{Pod, Zeroable};
use core::sync::atomic::Ordering::*;
use outlast_image::degradation::Degradation;
use outlast_image::mutant::Mutant;

/// A `REPLY` or `REPLY_SUM` of the journal, or an object of a commit.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
pub struct Entry {
    pub source: u64,
    /// What had been sent at the commit.
    pub base: u64,
    /// After so many bytes the sum is, or was, as expected; 0: nobody knows.
    pub expected_at: u64,
    pub fd: i32,
    pub expected: u32,
    /// The sum at the commit; 1: there is none.
    pub crc: u32,
    pub is_lost: u32,
}

impl Entry {
    pub const NOTHING: Entry = Entry { source: 0, base: 0, expected_at: 0, fd: -1, expected: 0, crc: 0, is_lost: 0 };
}

/// As many are read from the journal at once, which lends no two at a time.
const AT_ONCE: usize = 64;

/// Puts what is still not to be sent again into the commit that is being made, which makes the journal void.
pub fn save(e: &mut Engine) {
    shared::save(e);
    if OWED.load(Relaxed) == 0 && e.replies.objects == 0 {
        return;
    }
    let Some(store) = &mut e.store else { return };
    let (before, mut kept, mut is_less) = (e.replies.objects, 0, false);
    let next = store.seq() + 2;
    for known in e.replies.known.owed() {
        // Closed, or filters that the program has installed may not let the engine ask any more.
        if e.fds.source(known.fd) != Some(known.source) || call_filters::exist() {
            (known.left, is_less) = (0, true);
            OWED.fetch_sub(1, Relaxed);
            degrade(Degradation::ReplyDiffers);
            continue;
        }
        known.base += known.replied;
        known.expected.0 = known.expected.0.saturating_sub(known.replied);
        (known.replied, known.since) = (0, next);
        let entry = Entry {
            source: known.source,
            base: known.base,
            expected_at: known.expected.0,
            fd: known.fd,
            expected: known.expected.1,
            crc: known.sum.crc,
            is_lost: known.sum.is_lost.into(),
        };
        store.put(object::REPLY, kept, bytemuck::bytes_of(&entry));
        kept += 1;
    }
    for key in kept..before {
        store.delete(object::REPLY, key);
    }
    e.replies.objects = kept;
    if is_less {
        caught_up(e);
    }
}

/// What a restored program is not to send again. `foreign`: its connections are others, or gone.
pub fn load(e: &mut Engine, foreign: bool) {
    shared::load(e);
    e.replies.known.clear();
    e.replies.refused = Refused::NOTHING;
    e.replies.objects = 0;
    OWED.store(0, Relaxed);
    let buf = scratch::object_buffer();
    loop {
        let key = e.replies.objects;
        let Some(n) = e.store().object(object::REPLY, key, buf) else { break };
        e.replies.objects += 1;
        if let (Some(entry), false) = (entry_of(&buf[..n.min(buf.len())]), foreign) {
            owe(e, entry);
        }
    }
    if !foreign {
        load_journal(e);
    }
    if are_owed() {
        dispatch::slow_down_waits(true);
    }
}

fn load_journal(e: &mut Engine) {
    let (mut at, mut entries) = (0, [(0, Entry::NOTHING); AT_ONCE]);
    loop {
        let (mut seen, mut found) = (0, 0);
        e.store().journal_for_each(&mut |_, kind, bytes| {
            if let (journal::REPLY | journal::REPLY_SUM, Some(entry)) = (kind, entry_of(bytes)) {
                if seen >= at && found < entries.len() {
                    entries[found] = (kind, entry);
                    found += 1;
                }
                seen += 1;
            }
        });
        if found == 0 {
            return;
        }
        at += found;
        for (kind, entry) in &entries[..found] {
            match *kind {
                journal::REPLY => owe(e, *entry),
                _ => expect(e, entry),
            }
        }
    }
}

fn entry_of(bytes: &[u8]) -> Option<Entry> {
    bytes.get(..size_of::<Entry>()).map(bytemuck::pod_read_unaligned)
}

fn owe(e: &mut Engine, entry: Entry) {
    let Entry { source, base, fd, expected_at, expected, crc, is_lost } = entry;
    let sum = Sum { crc, is_lost: is_lost != 0 };
    let since = since(e);
    if e.fds.source(fd) != Some(source) || e.replies.known.find(source, since).is_some() {
        return;
    }
    let sent = count::sent(fd).filter(|_| !without(Mutant::Replies));
    let left = sent.map_or(0, |sent| sent.saturating_sub(base));
    let known = Known { source, since, fd, base, left, sum, expected: (expected_at, expected), ..Known::NOTHING };
    if e.replies.known.add(known) && left > 0 {
        OWED.fetch_add(1, Relaxed);
    }
}

/// The last sum that was noted of a connection counts.
fn expect(e: &mut Engine, entry: &Entry) {
    let since = since(e);
    if let Some(known) = e.replies.known.find(entry.source, since) {
        known.expected = (entry.expected_at, entry.expected);
    }
}
