//! Where each part of a store lies in its region.

/// Bytes a page and a frame.
pub const PAGE: u64 = 4096;
/// Bytes of address space in a chunk, and of frames behind it.
pub const CHUNK: u64 = 2 << 20;
/// Pages in a chunk.
pub const CHUNK_PAGES: u64 = CHUNK / PAGE;
/// Addresses of pages lie below this.
pub const ADDRESS_END: u64 = 1 << 57;

/// Offset of the superblock.
pub const SUPERBLOCK: u64 = 0;
/// Offsets of the two head slots: a page each, so that damage to one spares the other.
pub const HEADS: [u64; 2] = [PAGE, 2 * PAGE];
/// Offset of the word that publishes a commit: the sequence number of the last one. Alone in its cache line.
/// This and the next two words are sealed: see [`crate::word`].
pub const COMMITTED: u64 = 3 * PAGE;
/// Offset of the word that says which epoch is being folded away.
pub const FOLDING: u64 = 3 * PAGE + 64;
/// Offset of the word that counts how often the journal was emptied by hand.
pub const JOURNAL_RUN: u64 = 3 * PAGE + 128;
/// How often the store was opened to be written to: for those who look on, since whoever opens it discards what the last commit does
/// not need.
pub const OPENINGS: u64 = 3 * PAGE + 192;
/// Of a store that lags, sealed: everything up to this commit is on the medium. So is a record that says so itself.
pub const SETTLED: u64 = 3 * PAGE + 256;
/// Of a store that lags: [`crate::Region::cache`] of whoever wrote to it last.
pub const CACHE: u64 = 3 * PAGE + 320;
/// Where the areas begin.
const FIRST_AREA: u64 = 4 * PAGE;

/// Bytes of one entry of a chunk table.
pub const TABLE_ENTRY: u64 = 80;
/// Bytes of one entry of the list of touched chunks.
pub const TOUCHED_ENTRY: u64 = 8;
/// More chunks than this have no place in the index.
pub const MAX_CHUNKS: u64 = 1 << 17;

/// A range of the region, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    pub off: u64,
    pub len: u64,
}

/// All areas, in the order in which they lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Areas {
    /// Chunks whose frames were written directly in this epoch.
    pub touched: Span,
    /// Chunk tables, one a head slot.
    pub tables: [Span; 2],
    /// Object snapshots, one a head slot.
    pub snapshots: [Span; 2],
    /// The undo journal.
    pub journal: Span,
    /// The write-ahead ring with room for a commit far larger than its nominal length.
    pub ring: Span,
    /// Frames: 512 a chunk.
    pub base: Span,
}

/// How many areas there are in a superblock.
pub const AREAS: usize = 8;

impl Areas {
    /// Divides a region of `len` bytes, for a ring of nominally `ring_len`. None when it is too short.
    pub fn divide(len: u64, ring_len: u64) -> Option<Areas> {
        let chunks = (len / CHUNK).clamp(1, MAX_CHUNKS);
        let whole_pages = |bytes: u64| bytes.next_multiple_of(PAGE);
        let part = |share: u64, most: u64| whole_pages((len / share).min(most));
        let lens = [
            whole_pages(chunks * TOUCHED_ENTRY),
            whole_pages(chunks * TABLE_ENTRY),
            whole_pages(chunks * TABLE_ENTRY),
            part(256, 64 << 20),
            part(256, 64 << 20),
            part(128, 1 << 30),
            part(16, 16 << 30).max(whole_pages(ring_len)),
        ];
        let mut spans = [Span::default(); AREAS];
        let mut off = FIRST_AREA;
        for (span, len) in spans.iter_mut().zip(lens) {
            *span = Span { off, len };
            off = off.checked_add(len)?;
        }
        let base = off.next_multiple_of(CHUNK);
        let room = len.checked_sub(base)? / CHUNK * CHUNK;
        spans[AREAS - 1] = Span { off: base, len: room.min(chunks * CHUNK) };
        (room > 0).then(|| Areas::from_spans(spans))
    }

    /// The length of the shortest region that [`Areas::divide`] takes.
    pub fn least(ring_len: u64) -> u64 {
        let mut len = CHUNK + ring_len.next_multiple_of(CHUNK);
        while Areas::divide(len, ring_len).is_none() && len < 1 << 60 {
            len += len.max(CHUNK) / 8 / CHUNK * CHUNK + CHUNK;
        }
        len
    }

    /// The areas as the superblock lists them.
    pub fn spans(&self) -> [Span; AREAS] {
        let [table_a, table_b] = self.tables;
        let [snapshot_a, snapshot_b] = self.snapshots;
        [self.touched, table_a, table_b, snapshot_a, snapshot_b, self.journal, self.ring, self.base]
    }

    fn from_spans(spans: [Span; AREAS]) -> Areas {
        let [touched, table_a, table_b, snapshot_a, snapshot_b, journal, ring, base] = spans;
        Areas { touched, tables: [table_a, table_b], snapshots: [snapshot_a, snapshot_b], journal, ring, base }
    }

    /// Takes areas from an untrusted superblock: whole pages, in order, apart from each other, below `len`, large enough
    /// for each other.
    pub fn checked(spans: [Span; AREAS], len: u64) -> Option<Areas> {
        let mut end = FIRST_AREA;
        for span in spans {
            if span.off < end || span.off % PAGE != 0 || span.len % PAGE != 0 || span.len == 0 {
                return None;
            }
            end = span.off.checked_add(span.len)?;
        }
        let areas = Areas::from_spans(spans);
        let chunks = areas.base.len / CHUNK;
        let fits = end <= len
            && areas.base.len % CHUNK == 0
            && (1..=MAX_CHUNKS).contains(&chunks)
            && areas.touched.len / TOUCHED_ENTRY >= chunks
            && areas.tables.iter().all(|table| table.len / TABLE_ENTRY >= chunks);
        fits.then_some(areas)
    }

    /// How many chunks have frames.
    pub fn chunks(&self) -> u32 {
        (self.base.len / CHUNK) as u32
    }

    /// Offset of the frame of page `page` of chunk `index`.
    #[inline]
    pub fn frame(&self, index: u32, page: u32) -> u64 {
        self.base.off + index as u64 * CHUNK + page as u64 * PAGE
    }

    /// Offset of entry `index` of table `slot`.
    pub fn table_entry(&self, slot: usize, index: u32) -> u64 {
        self.tables[slot].off + index as u64 * TABLE_ENTRY
    }
}
