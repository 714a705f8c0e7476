//! Replies of a server (RMK, §6.2): what it sends on connections that others have made has no commit before it, and is not sent twice.
//!
//! The kernel counts what is sent on a connection: what was acknowledged and what is queued. Before the first reply since a commit that
//! count goes into the journal. A restored program takes its requests from the log again ([`crate::inputs`]) and makes
//! its replies again; as many bytes as the connection has more by then it need not send: it is told that it has. Nothing is noted of a
//! reply before it leaves, and no death can come between it and its count.
//!
//! That is right for a server that does the same again when it reads the same in the same order: what it replies may not depend on the
//! moment, on random numbers, or on what comes by other ways than streams. Until all replies are made again input comes in its order, each piece once as
//! much was replied to where it came from as had been, and nothing new comes: to a client that waits for each reply nobody could say otherwise, and what the server knows of one
//! connection may be part of what it replies on another. Whether the bytes are the same is known by a sum that is noted after a reply; if they are not, that
//! is told.

mod count;
mod keeping;
mod known;
mod sending;

pub use keeping::{load, save};

use crate::call_filters;
use crate::calls::{offsets, output};
use crate::control::degrade;
use crate::dispatch::{self, Call};
use crate::mutant::without;
use crate::operation::{self, is_nonblocking};
use crate::restore;
use crate::state::{journal, Engine};
use crate::sys::{err, nr};
use crate::thread::Thread;
use crate::world;
use core::sync::atomic::{AtomicU32, Ordering::*};
use count::Ports;
use keeping::Entry;
use known::{Known, Table};
use outlast_image::context::PendingCall;
use outlast_image::degradation::Degradation;
use outlast_image::descriptor::descriptor_kind as kind;
use outlast_image::inject::option;
use outlast_image::mutant::Mutant;
use outlast_store::ENTRIES_MAX;

/// Reads between two commits, so that what a recovery has to do again stays little.
pub const READS: u16 = 64;
/// Entries of the journal that others may need.
const RESERVE: u32 = 1 << 10;
/// Sums between two commits.
const SUMS: u32 = 1 << 10;
/// A program that tries in vain so often, with replies left, will not make them.
const PATIENCE: u32 = 10_000;

pub struct Replies {
    known: Table,
    ports: Ports,
    /// How many objects the last commit holds.
    objects: u64,
    refused: Refused,
    /// Sums since the commit.
    sums: u32,
    sums_since: u64,
}

/// Input that was refused.
struct Refused {
    /// So often since something was replied or read.
    times: u32,
    ever: bool,
    /// The program is not kept from new input any more.
    too_often: bool,
}

impl Refused {
    const NOTHING: Refused = Refused { times: 0, ever: false, too_often: false };
}

impl Replies {
    pub const fn new() -> Replies {
        Replies {
            known: Table::new(),
            ports: Ports::new(),
            objects: 0,
            refused: Refused::NOTHING,
            sums: 0,
            sums_since: 0,
        }
    }

    /// Something was read that was refused before.
    pub fn some_read(&mut self) {
        self.refused.times = 0;
    }

    /// Bytes replied on a connection since commit `seq`, the last one: requests come again in step with them.
    pub fn replied(&mut self, source: u64, seq: u64) -> u64 {
        self.known.find(source, seq + 1).map_or(0, |known| known.replied)
    }
}

/// Connections on which a restored program has not sent everything again.
static OWED: AtomicU32 = AtomicU32::new(0);

/// Is there anything that is not to be sent again?
#[inline(always)]
pub fn are_owed() -> bool {
    OWED.load(Relaxed) != 0
}

/// Does the program answer with no commit before?
pub fn are_free(e: &Engine) -> bool {
    e.args.options & option::REPLIES != 0 && e.ring.available() && !world::has_several() && !call_filters::exist()
}

/// May the call be a reply?
pub fn concern(e: &mut Engine, call: &Call) -> bool {
    (are_owed() || are_free(e)) && e.fds.kind(call.fd()) == kind::SOCKET
}

/// Sends a reply, or has it be sent already. `None`: it is an output as any other.
pub fn serve(e: &mut Engine, t: &mut Thread, call: &Call) -> Option<i64> {
    if !concern(e, call) {
        return None;
    }
    let source = e.fds.source(call.fd())?;
    let len = sending::length(call).unwrap_or(0);
    let done = skip(e, call, source, len);
    if len == 0 || done == len {
        return (done > 0).then_some(done as i64);
    }
    if !may_be_sent(e, call, source) {
        return (done > 0).then(|| send_rest(e, t, call, done));
    }
    let r = sending::send(call, done);
    let all = done + r.max(0) as u64;
    sum_up(e, call, source, done, all);
    let is_full = r >= 0 || r == err::EAGAIN;
    if all == len || !is_full || sending::wants_no_more(call, is_nonblocking(call.fd())) {
        return Some(if all > 0 { all as i64 } else { r });
    }
    // It waits for room.
    (all > 0).then(|| send_rest(e, t, call, all))
}

/// Sends what is left of a call after its first `done` bytes with a commit before it, and waits if that takes it.
fn send_rest(e: &mut Engine, t: &mut Thread, call: &Call, done: u64) -> i64 {
    // A file is content with less.
    if call.nr == nr::SENDFILE {
        return done as i64;
    }
    output::go_on(e, t, &PendingCall { offset: done, ..call.pending(operation::kind(e)) })
}

/// Takes from what is left as many bytes as the call is about, or as there are: the program is told that it has sent them.
fn skip(e: &mut Engine, call: &Call, source: u64, len: u64) -> u64 {
    let left = owed(e, source).map_or(0, |known| known.left);
    if left == 0 || len == 0 {
        return 0;
    }
    let n = left.min(len);
    if call.nr == nr::SENDFILE {
        output::sent_file(e, call, n);
    }
    sum_up(e, call, source, 0, n);
    let since = since(e);
    e.replies.refused.times = 0;
    if let Some(known) = e.replies.known.find(source, since) {
        known.left -= n;
        if known.left == 0 {
            paid(e);
        }
    }
    n
}

/// Nothing is left any more of one connection.
fn paid(e: &mut Engine) {
    OWED.fetch_sub(1, Relaxed);
    caught_up(e);
}

/// What comes from now on is new, if the log is empty as well.
pub fn caught_up(e: &mut Engine) {
    if are_owed() || !e.inputs.is_empty() {
        return;
    }
    dispatch::slow_down_waits(false);
    let Refused { ever, .. } = core::mem::replace(&mut e.replies.refused, Refused::NOTHING);
    if ever {
        // What was refused may have been an edge.
        restore::rearm(e);
    }
}

/// The program has closed it.
pub fn closed(e: &mut Engine, fd: i32) {
    let source = e.replies.known.owed().find(|known| known.fd == fd).map(|known| known.source);
    if let Some(source) = source {
        differ(e, source);
    }
}

/// The bytes `from..to` of the call were replied.
fn sum_up(e: &mut Engine, call: &Call, source: u64, from: u64, to: u64) {
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
    if e.replies.sums_since != since {
        (e.replies.sums, e.replies.sums_since) = (0, since);
    }
    // What was replied before is noted already.
    if is_read && left == 0 && e.replies.sums < SUMS && has_room(e) {
        e.replies.sums += 1;
        let entry = Entry { source, fd, expected_at: at, expected: sum.crc, ..Entry::NOTHING };
        let _ = e.store().journal_append(journal::REPLY_SUM, bytemuck::bytes_of(&entry));
    }
}

/// Can the call be sent as a reply? The journal says what was sent before then.
fn may_be_sent(e: &mut Engine, call: &Call, source: u64) -> bool {
    let fd = call.fd();
    if !are_free(e) {
        return false;
    }
    if call.nr == nr::SENDFILE {
        if !is_nonblocking(fd) {
            return false;
        }
        offsets::note_moved(e, call);
    }
    let since = since(e);
    if let Some(known) = e.replies.known.find(source, since) {
        return !known.is_other;
    }
    let is_reply = count::is_plain(fd) && e.replies.ports.lead_to(&mut e.fds, fd);
    let base = if is_reply && has_room(e) { count::sent(fd) } else { None };
    let known = Known { source, since, fd, is_other: base.is_none(), base: base.unwrap_or(0), ..Known::NOTHING };
    if !e.replies.known.add(known) || known.is_other {
        return false;
    }
    let entry = Entry { source, fd, base: known.base, ..Entry::NOTHING };
    e.store().journal_append(journal::REPLY, bytemuck::bytes_of(&entry)).is_ok()
}

fn has_room(e: &mut Engine) -> bool {
    e.store().journal_count() < ENTRIES_MAX - RESERVE
}

/// What stands for the last commit, in what is known of connections.
fn since(e: &mut Engine) -> u64 {
    e.store().seq() + 1
}

/// Does the program do again what its predecessor did? Until the log is empty and all that was replied is replied again.
pub fn are_repeated(e: &Engine) -> bool {
    let more = are_owed() || !e.inputs.is_empty() && are_free(e);
    more && !e.replies.refused.too_often && !without(Mutant::ReplyOrder)
}

/// Where replies are repeated input comes again in its order, and nothing new comes: how many bytes were replied to where it comes from.
/// `None`: they are not.
pub fn reached(e: &mut Engine, source: u64) -> Option<u64> {
    if !are_repeated(e) {
        return None;
    }
    let seq = e.store().seq();
    Some(e.replies.replied(source, seq))
}

fn owed(e: &mut Engine, source: u64) -> Option<&mut Known> {
    if !are_owed() {
        return None;
    }
    let since = since(e);
    e.replies.known.find(source, since).filter(|known| known.left > 0)
}

/// Is there something that is not to be sent again on this connection?
pub fn are_owed_on(e: &mut Engine, fd: i32) -> bool {
    are_owed() && e.fds.source(fd).is_some_and(|source| owed(e, source).is_some())
}

/// Is nothing new to come, as what is known already comes first? Whoever asks keeps it back.
pub fn keep_back(e: &mut Engine) -> bool {
    let does = are_repeated(e);
    e.replies.refused.ever |= does;
    does
}

/// Input is refused, as it had not come when the predecessor was here. False: it has been too often.
pub fn refuse(e: &mut Engine) -> bool {
    let refused = &mut e.replies.refused;
    (refused.times, refused.ever) = (refused.times + 1, true);
    if refused.times < PATIENCE {
        return true;
    }
    refused.too_often = true;
    degrade(Degradation::ReplyDiffers);
    for known in e.replies.known.owed() {
        known.left = 0;
    }
    OWED.store(0, Relaxed);
    caught_up(e);
    false
}

/// The program does something else than its predecessor did: what is left of this connection's replies it will not make.
fn differ(e: &mut Engine, source: u64) {
    if let Some(known) = owed(e, source) {
        known.left = 0;
        paid(e);
        degrade(Degradation::ReplyDiffers);
    }
}

/// A call that sends, and not as a reply.
pub fn sends_otherwise(e: &mut Engine, call: &Call) {
    let to = match call.nr {
        nr::SPLICE => call.args[2] as i32,
        _ => call.fd(),
    };
    let is_reply = sending::length(call).is_some();
    if let Some(source) = e.fds.source(to).filter(|_| !is_reply) {
        differ(e, source);
    }
}

/// Somebody who knows nothing of replies goes on with the program's connections.
pub fn leave() {
    if are_owed() {
        degrade(Degradation::ReplyDiffers);
    }
}
