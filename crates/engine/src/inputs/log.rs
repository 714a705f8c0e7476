//! The log of a restored program: what it took after the commit and has not taken again.

use super::noting::forget_under_way;
use crate::descriptors::source_by;
use crate::dispatch;
use crate::history::ring;
use crate::mutant::without;
use crate::replies;
use crate::retrace;
use crate::scratch;
use crate::state::{journal, object, Engine};
use crate::unnamed;
use bytemuck::{Pod, Zeroable};
use outlast_image::descriptor::Descriptor;
use outlast_image::history::{bytes, record, Record};
use outlast_image::mutant::Mutant;
use outlast_store::{MappedRegion, Store};

/// Pieces of input that a commit and the journal after it hold; more of them are preceded by a commit.
pub const MOST: usize = 2048;

/// An `INPUT` of the journal, or an object of a commit; the bytes follow.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
pub struct Head {
    /// Which source it came from: see `Descriptors::source`.
    pub source: u64,
    pub fd: i32,
    /// What the read returned.
    pub result: i32,
    /// The part of its operation's identifier.
    pub part: u64,
    /// As many bytes the program had sent to where it came from since the commit: see [`crate::replies`].
    pub after: u64,
}

/// Where the bytes of a piece are.
#[derive(Clone, Copy)]
enum Place {
    Journal(u64),
    Object(u64),
    /// Of the history.
    Past(u64),
}

/// A piece of input.
#[derive(Clone, Copy)]
struct Piece {
    head: Head,
    place: Place,
    /// Bytes of it that the program has taken again.
    taken: u32,
}

/// The log.
pub struct Log {
    pieces: [Piece; MOST],
    count: usize,
    /// How many objects the last commit holds.
    objects: u64,
}

const NOTHING: Piece =
    Piece { head: Head { source: 0, fd: -1, result: 0, part: 0, after: 0 }, place: Place::Journal(0), taken: 0 };

impl Log {
    pub const fn new() -> Log {
        Log { pieces: [NOTHING; MOST], count: 0, objects: 0 }
    }

    /// Is there anything in it?
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// How many pieces the last commit holds.
    pub fn objects(&self) -> usize {
        self.objects as usize
    }

    /// Bytes that the next read from a source gets at most: of the first piece, or of all before an end or error. `None`: there
    /// is nothing of it. `reached`: see [`crate::replies::reached`].
    pub fn left(&self, source: u64, one: bool, reached: Option<u64>) -> Option<u64> {
        let there = self.pieces[..self.count].iter().take_while(|piece| piece.is_there(source, reached));
        let mut pieces = there.filter(|piece| piece.head.source == source);
        let first = u64::from(pieces.next()?.left());
        let more = pieces.map(|piece| u64::from(piece.left())).take_while(|&left| left > 0 && first > 0 && !one);
        Some(first + more.sum::<u64>())
    }

    pub fn count(&self) -> usize {
        self.count
    }

    /// Is piece `i` of that source?
    pub fn is_of(&self, i: usize, source: u64) -> bool {
        self.pieces[i].head.source == source
    }

    /// May a read from `source` go as far as piece `i`? `reached`: see [`crate::replies::reached`].
    pub fn is_there(&self, i: usize, source: u64, reached: Option<u64>) -> bool {
        self.pieces[..self.count].get(i).is_some_and(|piece| piece.is_there(source, reached))
    }

    /// The first piece of a source, and what reading it returned.
    pub fn first(&self, source: u64) -> Option<(usize, i64)> {
        let i = self.pieces[..self.count].iter().position(|piece| piece.head.source == source)?;
        let piece = &self.pieces[i];
        Some((i, if piece.head.result > 0 { piece.left().into() } else { piece.head.result.into() }))
    }

    fn add(&mut self, head: Head, place: Place) {
        if let Some(piece) = self.pieces.get_mut(self.count) {
            *piece = Piece { head, place, taken: 0 };
            self.count += 1;
        }
    }
}

impl Piece {
    fn is_there(&self, source: u64, reached: Option<u64>) -> bool {
        reached.is_none_or(|reached| self.head.source == source && self.head.after <= reached)
    }

    fn left(&self) -> u32 {
        (self.head.result.max(0) as u32).saturating_sub(self.taken)
    }
}

/// What is left of piece `i`.
pub fn bytes_of(e: &mut Engine, i: usize) -> &'static [u8] {
    let piece = e.inputs.pieces[i];
    let buf = scratch::object_buffer();
    let n = copy(e.store(), &piece, buf);
    &buf[..n]
}

/// Copies what is left of a piece; how many bytes.
fn copy(store: &mut Store<'static, MappedRegion>, piece: &Piece, to: &mut [u8]) -> usize {
    const HEAD: usize = size_of::<Head>();
    let from = HEAD + piece.taken as usize;
    match piece.place {
        Place::Object(key) => {
            let n = store.object(object::INPUT, key, to).unwrap_or(0).min(to.len());
            to.copy_within(from.min(n)..n, 0);
            n.saturating_sub(from)
        }
        Place::Past(at) => {
            let Some(record) = record(ring(), at, u64::MAX) else { return 0 };
            let rest = bytes(ring(), at, &record).and_then(|bytes| bytes.get(piece.taken as usize..));
            let rest = rest.unwrap_or(&[]);
            let n = rest.len().min(to.len());
            to[..n].copy_from_slice(&rest[..n]);
            n
        }
        Place::Journal(at) => {
            let Some((_, bytes, _)) = store.journal_read(at) else { return 0 };
            let bytes = bytes.get(from..).unwrap_or(&[]);
            to[..bytes.len()].copy_from_slice(bytes);
            bytes.len()
        }
    }
}

/// The program has taken `n` bytes of piece `i`, or its end or error.
pub fn taken(e: &mut Engine, i: usize, n: u32) {
    e.replies.some_read();
    let log = &mut e.inputs;
    log.pieces[i].taken += n;
    if log.pieces[i].left() == 0 {
        log.pieces.copy_within(i + 1..log.count, i);
        log.count -= 1;
        if log.is_empty() {
            dispatch::slow_down_waits(false);
            replies::caught_up(e);
        }
    }
}

/// Does the journal say that descriptors have become others since the commit?
fn were_others(e: &mut Engine) -> bool {
    let mut found = false;
    e.store().journal_for_each(&mut |_, kind, _| found |= kind == journal::RESUMED);
    found
}

/// A piece of the log was read from a source of the dead. It is one of what there is now under the number; or of nothing, for what was made
/// anew holds what was read since the commit.
fn renew(e: &mut Engine, piece: &Piece) -> Option<u64> {
    let fd = dead_source(e, piece.head.source).unwrap_or(piece.head.fd);
    let is_void = !matches!(piece.place, Place::Object(_)) && unnamed::is_whole(e, fd);
    if is_void {
        None
    } else {
        Some(e.fds.source(fd).unwrap_or(0))
    }
}

/// Which descriptor had the source, as the commit says.
fn dead_source(e: &mut Engine, source: u64) -> Option<i32> {
    (0..e.fds.end()).find(|&fd| {
        let mut d = Descriptor::default();
        e.fds.is_open(fd)
            && e.store().object(object::DESCRIPTOR, fd as u64, bytemuck::bytes_of_mut(&mut d)).is_some()
            && source_by(d.dev, d.inode) == source
    })
}

/// Fills the log of a restored program. `cold`: the sources are others, under the same numbers.
pub fn load(e: &mut Engine, cold: bool) {
    (e.inputs.count, e.inputs.objects) = (0, 0);
    if without(Mutant::InputLog) {
        return;
    }
    if cold {
        forget_under_way();
        // There is room: who has died has left some.
        let _ = e.store().journal_append(journal::RESUMED, &[]);
    }
    let buf = scratch::object_buffer();
    loop {
        let key = e.inputs.objects;
        let n = e.store().object(object::INPUT, key, buf).unwrap_or(0);
        let Some(head) = buf[..n.min(buf.len())].get(..size_of::<Head>()) else { break };
        e.inputs.add(bytemuck::pod_read_unaligned(head), Place::Object(key));
        e.inputs.objects += 1;
    }
    retrace::load(e, &mut |e, at, past| {
        let Record { source, fd, result, .. } = *past;
        e.inputs.add(Head { source, fd, result, part: 0, after: 0 }, Place::Past(at));
    });
    let log = &mut e.inputs;
    if let Some(store) = &mut e.store {
        store.journal_for_each(&mut |at, kind, bytes| {
            if let (journal::INPUT, Some(head)) = (kind, bytes.get(..size_of::<Head>())) {
                log.add(bytemuck::pod_read_unaligned(head), Place::Journal(at));
            }
        });
    }
    let cold = were_others(e);
    let mut left = 0;
    for i in 0..e.inputs.count {
        let mut piece = e.inputs.pieces[i];
        if cold {
            let Some(source) = renew(e, &piece) else { continue };
            (piece.head.source, piece.head.after) = (source, 0);
        }
        if piece.head.result > 0 {
            // As many bytes as there are, whatever the store says.
            piece.head.result = copy(e.store(), &piece, scratch::object_buffer()) as i32;
        }
        e.inputs.pieces[left] = piece;
        left += 1;
    }
    e.inputs.count = left;
    if !e.inputs.is_empty() {
        dispatch::slow_down_waits(true);
    }
}

/// A child has none of what its parent is to read again.
pub fn forget(e: &mut Engine) {
    e.inputs.count = 0;
}

/// Puts what is left into the commit that is being made, which makes the journal void.
pub fn save(e: &mut Engine) {
    let Some(store) = &mut e.store else { return };
    let log = &mut e.inputs;
    if log.count == 0 && log.objects == 0 {
        return;
    }
    let buf = scratch::object_buffer();
    // Later pieces become earlier objects: no object is overwritten that is still to be read.
    for (i, piece) in log.pieces[..log.count].iter_mut().enumerate() {
        let n = copy(store, piece, buf);
        if piece.head.result > 0 {
            piece.head.result = n as i32;
        }
        // What is counted begins anew with this commit.
        let replied = e.replies.replied(piece.head.source, store.seq());
        piece.head.after = piece.head.after.saturating_sub(replied);
        store.put2(object::INPUT, i as u64, bytemuck::bytes_of(&piece.head), &buf[..n]);
        (piece.place, piece.taken) = (Place::Object(i as u64), 0);
    }
    for key in log.count as u64..log.objects {
        store.delete(object::INPUT, key);
    }
    log.objects = log.count as u64;
}
