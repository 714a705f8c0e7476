//! The head: which base image is in force. Two slots, written in turn; the epoch's lowest bit says which.
//!
//! A slot owns a chunk table and an object snapshot of its own, so that a fold never touches what the head in force
//! refers to, except the frames, which it overwrites with what the ring holds anyway.

use crate::areas::HEADS;
use crate::cpu::Cpu;
use crate::crc::crc32c;
use crate::region::Region;
use bytemuck::{bytes_of, bytes_of_mut, Pod, Zeroable};

/// One slot, 64 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Head {
    /// One more with each fold. The slot is `epoch % 2`.
    pub epoch: u64,
    /// The last commit that the base contains.
    pub fold_seq: u64,
    /// Bytes of the object snapshot.
    pub snapshot_len: u64,
    /// The commit group's sequence number of `fold_seq`.
    pub group_seq: u64,
    /// Entries of the chunk table.
    pub chunks: u32,
    /// Objects in the snapshot.
    pub objects: u32,
    /// Checksum of the object snapshot.
    pub snapshot_crc: u32,
    reserved: [u32; 4],
    crc: u32,
}

/// Sequence numbers and epochs stay below this.
pub const MAX_SEQ: u64 = 1 << 48;

const CHECKED: usize = core::mem::size_of::<Head>() - 4;
const _: () = assert!(core::mem::size_of::<Head>() == 64);

/// What the slot that is not in force holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Other {
    /// The state before the last fold.
    Older(Head),
    /// Nothing was ever written there.
    Blank,
    /// A torn or damaged head: perhaps a newer one.
    Invalid,
}

impl Head {
    /// The head of a new store; `seed` is the checksum of nothing.
    pub fn first(seq: u64, seed: u32) -> Head {
        Head { epoch: 1, fold_seq: seq, snapshot_crc: seed, ..Head::zeroed() }
    }

    /// Slot, table and snapshot of this head.
    pub fn slot(&self) -> usize {
        (self.epoch % 2) as usize
    }

    /// Writes it into its slot.
    pub fn write<R: Region>(mut self, region: &mut R, cpu: Cpu, seed: u32) {
        self.crc = crc32c(cpu, seed, &bytes_of(&self)[..CHECKED]);
        region.write(HEADS[self.slot()], bytes_of(&self));
    }

    fn read<R: Region>(region: &R, cpu: Cpu, seed: u32, slot: usize) -> Result<Head, Other> {
        let mut head = Head::zeroed();
        region.read(HEADS[slot], bytes_of_mut(&mut head));
        if bytes_of(&head).iter().all(|byte| *byte == 0) {
            return Err(Other::Blank);
        }
        let possible = head.epoch > 0 && head.epoch < MAX_SEQ && head.fold_seq < MAX_SEQ;
        let valid = possible && head.crc == crc32c(cpu, seed, &bytes_of(&head)[..CHECKED]) && head.slot() == slot;
        if valid {
            Ok(head)
        } else {
            Err(Other::Invalid)
        }
    }

    /// The valid head with the highest epoch, and what the other slot holds.
    pub fn choose<R: Region>(region: &R, cpu: Cpu, seed: u32) -> Option<(Head, Other)> {
        match [Head::read(region, cpu, seed, 0), Head::read(region, cpu, seed, 1)] {
            [Ok(a), Ok(b)] if a.epoch > b.epoch => Some((a, Other::Older(b))),
            [Ok(a), Ok(b)] => Some((b, Other::Older(a))),
            [Ok(head), Err(other)] | [Err(other), Ok(head)] => Some((head, other)),
            [Err(_), Err(_)] => None,
        }
    }
}
