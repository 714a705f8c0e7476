//! The store of one process: what it holds in memory, making one, and plain questions to it.

use crate::areas::{Areas, CACHE, COMMITTED, FOLDING, HEADS, JOURNAL_RUN, PAGE, SETTLED};
use crate::bitmap::is_set;
use crate::commit::Transaction;
use crate::cpu::Cpu;
use crate::crc::crc32c;
use crate::error::OpenError;
use crate::head::Head;
use crate::index::{page_of, ChunkIndex};
use crate::journal::Journal;
use crate::objects::ObjectIndex;
use crate::record::HEADER;
use crate::region::{Region, SyncError};
use crate::room::Reserved;
use crate::scratch::Scratch;
use crate::superblock::{Params, Parent, Superblock};
use crate::word::seal;

/// A store, open for use by one thread at a time.
///
/// The state it protects is a set of pages (by address), a set of objects (by kind and key) and a journal of what to undo.
/// [`Store::begin`] … [`Store::commit`] replaces one published state by the next, atomically.
pub struct Store<'s, R: Region> {
    pub(crate) region: R,
    pub(crate) superblock: Superblock,
    pub(crate) cpu: Cpu,
    pub(crate) seed: u32,
    pub(crate) head: Head,
    /// The last published commit.
    pub(crate) seq: u64,
    pub(crate) group_seq: u64,
    /// Bytes of the ring taken by published records.
    pub(crate) ring_used: u64,
    /// Bytes of the ring beyond which it has no memory.
    pub(crate) ring_resident: u64,
    /// Bytes of the ring that this process can write to without a page fault.
    pub(crate) ring_ready: u64,
    /// See [`Store::keep_ring`].
    pub(crate) keeps_ring: bool,
    /// Of a store that lags: the last commit that is on the medium.
    pub(crate) settled: u64,
    /// Of a store that lags: where in the ring commits begin that may not be on the medium.
    pub(crate) unsettled_ring: u64,
    /// The same of frames: first byte, end. Empty when equal.
    pub(crate) unsettled_frames: (u64, u64),
    pub(crate) transaction: Transaction,
    pub(crate) chunks: ChunkIndex<'s>,
    pub(crate) objects: ObjectIndex<'s>,
    pub(crate) journal: Journal,
    pub(crate) buffer: &'s mut [u8],
    /// Entries in the list of touched chunks.
    pub(crate) touched: u64,
    /// The word of the same name, as it was when this store was opened.
    pub(crate) openings: u64,
    pub(crate) read_only: bool,
    /// What was written reads back differently.
    pub(crate) damaged: bool,
    /// Why nobody knows which head is on the medium.
    pub(crate) head_unsure: Option<SyncError>,
    pub(crate) folds: u64,
    /// One a head slot.
    pub(crate) reserved: [Reserved; 2],
    #[cfg(test)]
    pub(crate) mutant: crate::tests::mutant::Mutant,
}

/// Figures of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// The last published commit.
    pub seq: u64,
    /// One more with each fold, over the store's whole life.
    pub epoch: u64,
    /// Folds since it was opened.
    pub folds: u64,
    /// Bytes of commit records since the last fold, and nominally at most.
    pub ring_used: u64,
    pub ring_len: u64,
    /// Chunks in use, and at most.
    pub chunks: u64,
    pub chunk_limit: u64,
    /// Pages present.
    pub live_pages: u64,
    /// Objects, and bytes that a snapshot of them takes.
    pub objects: u64,
    pub object_bytes: u64,
    /// Bytes of the journal in use.
    pub journal_used: u64,
}

impl<'s, R: Region> Store<'s, R> {
    /// Makes an empty store over the whole region; whatever was there is gone. Every page is absent, there is no object,
    /// and the sequence number is `params.base_seq`. `scratch` is working memory of at most [`crate::SCRATCH_LEN`] bytes.
    ///
    /// # Errors
    /// `TooShort`, `Scratch`, `Sync`.
    pub fn format(mut region: R, params: &Params, scratch: &'s mut [u8]) -> Result<Store<'s, R>, OpenError> {
        let len = region.len() / PAGE * PAGE;
        let params = Params { ring_len: params.ring_len.max(PAGE).next_multiple_of(PAGE), ..*params };
        let areas = Areas::divide(len, params.ring_len)
            .ok_or(OpenError::TooShort { found: len, needed: Areas::least(params.ring_len) })?;
        let needed = Scratch::needed(&areas);
        let scratch_len = scratch.len() as u64;
        let scratch = Scratch::divide(scratch, &areas).ok_or(OpenError::Scratch { found: scratch_len, needed })?;
        let superblock = Superblock { params, parent: Parent::default(), total_len: len, areas };
        let cpu = Cpu::detect();
        let head = Head::first(params.base_seq, superblock.seed(cpu));
        region.discard(0, len);
        region.barrier();
        let mut store = Store::assemble(region, superblock, cpu, head, scratch);
        store.ring_resident = 0;
        head.write(&mut store.region, cpu, store.seed);
        store.region.publish(COMMITTED, seal(params.base_seq));
        store.region.publish(JOURNAL_RUN, seal(0));
        if params.lags {
            store.region.publish(CACHE, store.region.cache());
        }
        if params.durable {
            store.region.sync(0, len)?;
        }
        superblock.write(&mut store.region, cpu);
        store.region.barrier();
        if params.durable {
            store.region.sync(0, PAGE)?;
        }
        Ok(store)
    }

    pub(crate) fn assemble(
        region: R,
        superblock: Superblock,
        cpu: Cpu,
        head: Head,
        scratch: Scratch<'s>,
    ) -> Store<'s, R> {
        Store {
            region,
            cpu,
            seed: superblock.seed(cpu),
            superblock,
            seq: head.fold_seq,
            group_seq: head.group_seq,
            head,
            ring_used: 0,
            // Whoever had the store before may have used all of it.
            ring_resident: superblock.areas.ring.len,
            ring_ready: 0,
            keeps_ring: false,
            settled: head.fold_seq,
            unsettled_ring: 0,
            unsettled_frames: (0, 0),
            transaction: Transaction::default(),
            chunks: scratch.chunks,
            objects: scratch.objects,
            journal: Journal::default(),
            buffer: scratch.buffer,
            touched: 0,
            openings: 0,
            read_only: false,
            damaged: false,
            head_unsure: None,
            folds: 0,
            reserved: [Reserved::default(); 2],
            #[cfg(test)]
            mutant: crate::tests::mutant::current(),
        }
    }

    /// Continues a checksum (0 at the start) over `bytes`.
    pub fn checksum(&self, crc: u32, bytes: &[u8]) -> u32 {
        crc32c(self.cpu, crc, bytes)
    }

    /// Sequence number of the last published commit.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Bytes of the ring taken by records since the last fold.
    #[inline]
    pub fn ring_used(&self) -> u64 {
        self.ring_used
    }

    /// The part of the ring, from its first byte to its end, that holds no record since the last fold: a copy of the store need not have it.
    pub fn dead_ring(&self) -> (u64, u64) {
        let ring = self.superblock.areas.ring;
        ((self.ring_start() + HEADER).next_multiple_of(PAGE).min(ring.off + ring.len), ring.off + ring.len)
    }

    /// Are commits to come as large as the last ones? Then a fold keeps the ring's memory, which they would need anew, at a fault a
    /// page; otherwise it gives back what is more than twice `Params::ring_len`.
    #[inline]
    pub fn keep_ring(&mut self, keeps: bool) {
        self.keeps_ring = keeps;
    }

    /// What the store was made from.
    pub fn params(&self) -> &Params {
        &self.superblock.params
    }

    /// Where everything lies.
    pub fn areas(&self) -> &Areas {
        &self.superblock.areas
    }

    /// The region.
    pub fn region(&self) -> &R {
        &self.region
    }

    /// Gives the region back.
    pub fn into_region(self) -> R {
        self.region
    }

    /// Whether the page at `addr` is present (in the transaction, if one is open).
    #[inline]
    pub fn contains(&self, addr: u64) -> bool {
        self.chunks.find(addr).is_some_and(|index| is_set(&self.chunks.state(index).live, page_of(addr)))
    }

    /// Figures; counts bits, so not for a hot path.
    pub fn stats(&self) -> Stats {
        Stats {
            seq: self.seq,
            epoch: self.head.epoch,
            folds: self.folds,
            ring_used: self.ring_used,
            ring_len: self.superblock.params.ring_len,
            chunks: self.chunks.mapped() as u64,
            chunk_limit: self.chunks.capacity() as u64,
            live_pages: self.chunks.live_pages(),
            objects: self.objects.count() as u64,
            object_bytes: self.objects.snapshot_len(),
            journal_used: self.journal.used,
        }
    }
}

const _: () = assert!(HEADS[1] < COMMITTED && COMMITTED < FOLDING && FOLDING < JOURNAL_RUN && JOURNAL_RUN < SETTLED);
