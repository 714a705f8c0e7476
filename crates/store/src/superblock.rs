//! The first page: what this region is, and where everything lies. Written once.

use crate::areas::{Areas, Span, AREAS, PAGE, SUPERBLOCK};
use crate::cpu::Cpu;
use crate::crc::crc32c;
use crate::error::OpenError;
use crate::region::Region;
use bytemuck::{bytes_of, Pod, Zeroable};

/// First word of a store.
pub const MAGIC: u64 = u64::from_le_bytes(*b"OUTLASTs");
/// The format written here, and the only one read.
pub const VERSION: u32 = 1;

/// Commits are on the medium before they are acknowledged.
const DURABLE: u32 = 1;
/// Or some time later.
const LAGS: u32 = 2;

/// The page as it lies in the region; the rest of the page is zero.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Raw {
    magic: u64,
    version: u32,
    page_size: u32,
    flags: u32,
    generation: u32,
    id: [u8; 16],
    group: u64,
    base_seq: u64,
    ring_len: u64,
    total_len: u64,
    parent_id: [u8; 16],
    parent_seq: u64,
    parent_generation: u32,
    layers: u32,
    areas: [[u64; 2]; AREAS],
    reserved: [u64; 16],
    reserved_word: u32,
    crc: u32,
}

const RAW_LEN: usize = core::mem::size_of::<Raw>();

/// What a store is made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// Bytes of commit records before the store wants to be folded; at least 4096.
    pub ring_len: u64,
    /// Commits must survive power loss, not only the death of the process.
    pub durable: bool,
    /// Of a durable store: only commits that settle are on the medium before they are acknowledged; a power loss leaves the state of
    /// the last one that did. See [`crate::Store::commit_unsettled`].
    pub lags: bool,
    /// Random.
    pub id: [u8; 16],
    /// Which process image this is: 0 at start, one more at each execve.
    pub generation: u32,
    /// Processes that commit together share this number; 0 for none.
    pub group: u64,
    /// Sequence number of the empty state that the store begins with.
    pub base_seq: u64,
}

impl Default for Params {
    fn default() -> Params {
        Params { ring_len: 2 << 20, durable: false, lags: false, id: [0; 16], generation: 0, group: 0, base_seq: 0 }
    }
}

/// A store that this one is a delta of (fork freezes the parent's layer); all zero where there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parent {
    pub id: [u8; 16],
    /// Sequence number at which the parent was frozen.
    pub seq: u64,
    pub generation: u32,
    /// Layers below this one.
    pub layers: u32,
}

/// A valid superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Superblock {
    pub params: Params,
    pub parent: Parent,
    /// Length of the region it was made for.
    pub total_len: u64,
    pub areas: Areas,
}

impl Superblock {
    /// Initial value of all checksums: a record of another store never passes as one of this store.
    pub(crate) fn seed(&self, cpu: Cpu) -> u32 {
        crc32c(cpu, 0, &self.params.id)
    }

    /// Writes the page.
    pub(crate) fn write<R: Region>(&self, region: &mut R, cpu: Cpu) {
        let mut raw = Raw {
            magic: MAGIC,
            version: VERSION,
            page_size: PAGE as u32,
            flags: u32::from(self.params.durable) * DURABLE + u32::from(self.params.lags) * LAGS,
            generation: self.params.generation,
            id: self.params.id,
            group: self.params.group,
            base_seq: self.params.base_seq,
            ring_len: self.params.ring_len,
            total_len: self.total_len,
            parent_id: self.parent.id,
            parent_seq: self.parent.seq,
            parent_generation: self.parent.generation,
            layers: self.parent.layers,
            areas: self.areas.spans().map(|span| [span.off, span.len]),
            ..Raw::zeroed()
        };
        raw.crc = crc32c(cpu, 0, &bytes_of(&raw)[..RAW_LEN - 4]);
        region.write(SUPERBLOCK, bytes_of(&raw));
    }

    /// Reads and checks the page. Changes nothing.
    ///
    /// # Errors
    /// Everything but `Scratch` and `Sync`.
    pub fn read<R: Region>(region: &R) -> Result<Superblock, OpenError> {
        if region.len() < PAGE {
            return Err(OpenError::Foreign);
        }
        let mut raw = Raw::zeroed();
        region.read(SUPERBLOCK, bytemuck::bytes_of_mut(&mut raw));
        if raw.magic != MAGIC {
            return Err(OpenError::Foreign);
        }
        if raw.version > VERSION {
            return Err(OpenError::Newer { found: raw.version, known: VERSION });
        }
        if raw.crc != crc32c(Cpu::detect(), 0, &bytes_of(&raw)[..RAW_LEN - 4]) || raw.version != VERSION {
            return Err(OpenError::Damaged("its superblock fails its checksum"));
        }
        if raw.page_size != PAGE as u32 {
            return Err(OpenError::PageSize { found: raw.page_size });
        }
        if raw.flags & !(DURABLE | LAGS) != 0 {
            return Err(OpenError::Newer { found: raw.version + 1, known: VERSION });
        }
        if raw.flags == LAGS {
            return Err(OpenError::Damaged("its superblock contradicts itself"));
        }
        if raw.layers != 0 {
            return Err(OpenError::Newer { found: raw.version + 1, known: VERSION });
        }
        if region.len() < raw.total_len {
            return Err(OpenError::TooShort { found: region.len(), needed: raw.total_len });
        }
        let spans = raw.areas.map(|[off, len]| Span { off, len });
        let areas = Areas::checked(spans, raw.total_len)
            .filter(|areas| (PAGE..=areas.ring.len).contains(&raw.ring_len))
            .filter(|_| raw.ring_len % PAGE == 0 && raw.total_len % PAGE == 0)
            .ok_or(OpenError::Damaged("its superblock describes impossible areas"))?;
        let params = Params {
            ring_len: raw.ring_len,
            durable: raw.flags & DURABLE != 0,
            lags: raw.flags & LAGS != 0,
            id: raw.id,
            generation: raw.generation,
            group: raw.group,
            base_seq: raw.base_seq,
        };
        let parent =
            Parent { id: raw.parent_id, seq: raw.parent_seq, generation: raw.parent_generation, layers: raw.layers };
        Ok(Superblock { params, parent, total_len: raw.total_len, areas })
    }
}
