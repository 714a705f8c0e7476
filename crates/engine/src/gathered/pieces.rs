//! What is gathered: bytes in the order in which they leave, and where each of them goes.

use super::ANY;
use crate::calls::joined;
use crate::dispatch::Call;
use crate::mutant::without;
use crate::state::object;
use crate::user;
use bytemuck::{Pod, Zeroable};
use core::sync::atomic::Ordering::*;
use outlast_image::mutant::Mutant;
use outlast_store::{MappedRegion, Store};

/// Bytes that are gathered at most.
const BYTES: usize = 8192;
/// Pieces: outputs in a row to the same descriptor are one.
const PIECES: usize = 32;

/// Outputs in a row: `nr` is `write`, or `sendto` with `flags`.
#[repr(C)]
#[derive(Clone, Copy, Default, Pod, Zeroable)]
pub struct Piece {
    pub fd: i32,
    pub len: u32,
    pub nr: u32,
    pub flags: u32,
    /// Bytes that the descriptor takes for certain.
    pub room: u32,
}

impl Piece {
    /// Does it go on with the other?
    fn takes(&self, other: &Piece) -> bool {
        (self.fd, self.nr, self.flags) == (other.fd, other.nr, other.flags) && self.len + other.len <= self.room
    }
}

/// See the module.
pub struct Pieces {
    pieces: [Piece; PIECES],
    count: usize,
    bytes: [u8; BYTES],
    len: usize,
    /// It is not as in the store; and there it is not empty.
    dirty: bool,
    stored: bool,
}

impl Pieces {
    pub const fn new() -> Pieces {
        Pieces {
            pieces: [Piece { fd: 0, len: 0, nr: 0, flags: 0, room: 0 }; PIECES],
            count: 0,
            bytes: [0; BYTES],
            len: 0,
            dirty: false,
            stored: false,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The output that is made next, once `done` bytes have left, as the call that makes it.
    pub fn next(&self, done: u64) -> Option<Call> {
        let mut end = 0;
        self.pieces[..self.count].iter().find_map(|piece| {
            end += piece.len as u64;
            let left = end.checked_sub(done).filter(|left| *left != 0)?.min(piece.len as u64);
            let at = self.bytes.as_ptr() as u64 + end - left;
            Some(Call { nr: piece.nr as u64, args: [piece.fd as u32 as u64, at, left, piece.flags as u64, 0, 0] })
        })
    }

    /// The first `done` bytes have left.
    pub fn skip(&mut self, done: u64) {
        let done = (done as usize).min(self.len);
        if done == 0 {
            return;
        }
        let (mut left, mut kept) = (done, 0);
        for n in 0..self.count {
            let mut piece = self.pieces[n];
            let gone = left.min(piece.len as usize);
            left -= gone;
            piece.len -= gone as u32;
            if piece.len != 0 {
                self.pieces[kept] = piece;
                kept += 1;
            }
        }
        self.count = kept;
        self.bytes.copy_within(done..self.len, 0);
        self.len -= done;
        self.dirty = true;
        self.publish();
    }

    /// Bytes that are to leave through the descriptor.
    pub fn queued(&self, fd: i32) -> u32 {
        self.pieces[..self.count].iter().filter(|piece| piece.fd == fd).map(|piece| piece.len).sum()
    }

    /// Does the last piece go on with this one?
    pub fn goes_on(&self, piece: &Piece) -> bool {
        self.pieces[..self.count].last().is_some_and(|last| last.takes(piece))
    }

    /// Adds a piece with its bytes from the program's memory. False: there is no room, or no such memory.
    pub fn append(&mut self, piece: Piece, from: u64) -> bool {
        let len = piece.len as usize;
        let Some(room) = self.bytes.get_mut(self.len..self.len + len) else { return false };
        if !user::read_bytes(from, room) {
            return false;
        }
        match self.pieces[..self.count].last_mut() {
            Some(last) if last.takes(&piece) => last.len += piece.len,
            _ if self.count == PIECES => return false,
            _ => {
                self.pieces[self.count] = piece;
                self.count += 1;
            }
        }
        self.len += len;
        self.dirty = true;
        self.publish();
        true
    }

    fn publish(&self) {
        ANY.store((self.len != 0).into(), Release);
    }

    /// Puts it into the commit that is being made, if it is not in the last one.
    pub fn save(&mut self, store: &mut Store<'_, MappedRegion>) {
        if !self.dirty {
            return;
        }
        if self.len != 0 && !without(Mutant::Gathered) {
            let mut head = [Piece::default(); PIECES + 1];
            head[0].len = self.count as u32;
            head[1..=self.count].copy_from_slice(&self.pieces[..self.count]);
            store.put2(object::GATHERED, 0, bytemuck::cast_slice(&head[..=self.count]), &self.bytes[..self.len]);
        } else if self.stored {
            store.delete(object::GATHERED, 0);
        }
        (self.stored, self.dirty) = (self.len != 0, false);
    }

    /// What `save` has put. The store is untrusted.
    pub fn read(mut rest: &[u8]) -> Pieces {
        let mut read = Pieces { stored: !rest.is_empty(), ..Pieces::new() };
        let count = take_piece(&mut rest).map_or(0, |head| head.len as usize).min(PIECES);
        let mut pieces = [Piece::default(); PIECES];
        pieces[..count].iter_mut().for_each(|piece| *piece = take_piece(&mut rest).unwrap_or_default());
        for piece in &pieces[..count] {
            let is_output = joined::may_join(&Call { nr: piece.nr as u64, args: [0; 6] });
            let Some(bytes) = take(&mut rest, piece.len as usize).filter(|_| is_output) else { break };
            read.append(*piece, bytes.as_ptr() as u64);
        }
        read.publish();
        read
    }
}

fn take<'a>(from: &mut &'a [u8], n: usize) -> Option<&'a [u8]> {
    let (taken, rest) = from.split_at_checked(n)?;
    *from = rest;
    Some(taken)
}

fn take_piece(from: &mut &[u8]) -> Option<Piece> {
    take(from, core::mem::size_of::<Piece>()).map(bytemuck::pod_read_unaligned)
}
