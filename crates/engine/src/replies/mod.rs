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

mod again;
mod count;
mod keeping;
mod known;
mod sending;
mod shared;
mod sums;

pub use again::{are_owed_on, caught_up, closed, keep_back, leave, reached, refuse, sends_otherwise};
pub use keeping::{load, save};
pub use sending::each_piece;
pub use shared::share;

use crate::call_filters;
use crate::calls::{offsets, output};
use crate::dispatch::Call;
use crate::operation::{self, is_nonblocking};
use crate::program_rings;
use crate::state::{journal, Engine};
use crate::sys::{err, nr};
use crate::thread::Thread;
use crate::world;
use again::{paid, Refused};
use core::sync::atomic::{AtomicU32, Ordering::*};
use count::Ports;
use keeping::Entry;
use known::{Known, Table};
use outlast_image::context::PendingCall;
use outlast_image::descriptor::descriptor_kind as kind;
use outlast_image::inject::option;
use outlast_store::ENTRIES_MAX;
use shared::Shared;

/// Reads between two commits, so that what a recovery has to do again stays little.
pub const READS: u16 = 64;
/// Entries of the journal that others may need.
const RESERVE: u32 = 1 << 10;

pub struct Replies {
    known: Table,
    ports: Ports,
    shared: Shared,
    /// How many objects the last commit holds.
    objects: u64,
    refused: Refused,
    sums: sums::Noted,
}

impl Replies {
    pub const fn new() -> Replies {
        Replies {
            known: Table::new(),
            ports: Ports::new(),
            shared: Shared::new(),
            objects: 0,
            refused: Refused::NOTHING,
            sums: sums::Noted::new(),
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
    let is_simple = e.ring.available() && !world::has_several() && !call_filters::exist() && !program_rings::exist(e);
    e.args.options & option::REPLIES != 0 && is_simple
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
    let r = sending::send(t, call, done);
    let all = done + r.max(0) as u64;
    sums::add(e, call, source, done, all);
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
    sums::add(e, call, source, 0, n);
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
    let is_reply = !e.replies.shared.has(source) && count::is_plain(fd) && e.replies.ports.lead_to(&mut e.fds, fd);
    let base = if is_reply && has_room(e) { count::sent(fd) } else { None };
    let noted = base.filter(|&base| {
        let entry = Entry { source, fd, base, ..Entry::NOTHING };
        e.store().journal_append(journal::REPLY, bytemuck::bytes_of(&entry)).is_ok()
    });
    let known = Known { source, since, fd, is_other: noted.is_none(), base: noted.unwrap_or(0), ..Known::NOTHING };
    e.replies.known.add(known) && !known.is_other
}

fn has_room(e: &mut Engine) -> bool {
    e.store().journal_count() < ENTRIES_MAX - RESERVE
}

/// What stands for the last commit, in what is known of connections.
fn since(e: &mut Engine) -> u64 {
    e.store().seq() + 1
}

fn owed(e: &mut Engine, source: u64) -> Option<&mut Known> {
    if !are_owed() {
        return None;
    }
    let since = since(e);
    e.replies.known.find(source, since).filter(|known| known.left > 0)
}
