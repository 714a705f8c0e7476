//! The store of one process: a base image and a write-ahead ring of commits, over any region of bytes.
//!
//! # Layout of a region
//!
//! | part | content |
//! |---|---|
//! | superblock (page 0) | what this is and where everything lies; written once |
//! | head slots (pages 1, 2) | which base image is in force; written in turn by folds |
//! | words (page 3) | the last published commit; the epoch being folded; how often the journal was emptied; what a store that lags has settled |
//! | touched | chunks whose absent frames may hold something since the last fold |
//! | chunk tables A, B | chunk of the address space → 512 frames, and which of its pages are present |
//! | object snapshots A, B | all objects as of a fold |
//! | journal | what to undo in the kernel's state, since the last commit |
//! | ring | commit records since the last fold |
//! | base | frames, 512 for each chunk, in the order in which chunks were first used |
//!
//! # How a commit is atomic
//!
//! A record goes into the ring: entries, then the header with the checksum; then one word of 8 bytes publishes it. A page
//! that the base does not need goes straight into its frame, and the record only names it: until the record is published
//! the page is absent, and recovery empties the frame. A store that must survive power loss syncs the record before it
//! publishes, and its recovery believes the checksums, not the word.
//!
//! A durable store may *lag*: most of its commits are not synced, and a power loss takes it back to the last one that was, which
//! says so in its record. Those after it may have reached the medium in any part, and do not count, whatever their checksums. Whether power
//! was lost is told by a word that names the kernel's cache. Before it changes frames a fold has everything settled.
//!
//! A fold applies the ring to the frames (the same result however often it is done), writes a chunk table and an object
//! snapshot beside those in force, then a head with the next epoch. Records carry the epoch, so that what is left in the
//! ring from before a fold never counts again.
//!
//! # Who looks on
//!
//! Between two folds nothing changes that the state of a published commit needs: records are only added, and frames only
//! written that no commit uses yet. So a process that looks on reads what it likes, and then asks whether a fold has begun
//! since: the word that a fold publishes first tells. The writer never waits for it.
//!
//! # What is checked
//!
//! Superblock, heads, tables, snapshots, records and journal entries carry a CRC-32C seeded by the store's random id, and
//! the words beside the heads carry 16 check bits. Frames carry none: a page damaged in the base is not noticed.
//!
//! The library allocates nothing: it works in the memory that its caller hands in, because it runs inside the protected
//! process. All that it reads from the region is untrusted.
#![no_std]
#[cfg(any(test, feature = "std"))]
extern crate std;

mod abort;
mod areas;
mod bitmap;
#[cfg(feature = "std")]
mod boot;
mod chunk_table;
mod commit;
mod cpu;
mod crc;
mod diff;
mod error;
#[cfg(feature = "std")]
mod file_region;
mod fold;
mod head;
mod index;
mod journal;
mod objects;
mod onlooker;
mod page;
#[cfg(feature = "std")]
mod plain_file;
mod read;
mod record;
mod recover;
mod region;
mod ring;
mod room;
mod scratch;
mod settle;
mod store;
mod superblock;
#[cfg(test)]
mod tests;
#[cfg(any(test, feature = "std"))]
mod vec_region;
mod word;

pub use areas::{Areas, Span, CHUNK, COMMITTED, PAGE};
#[cfg(feature = "std")]
pub use boot::boot;
pub use cpu::Cpu;
pub use crc::crc32c;
pub use diff::Page;
pub use error::{Area, OpenError, StoreError};
#[cfg(feature = "std")]
pub use file_region::FileRegion;
pub use journal::{ENTRIES_MAX, ENTRY_MAX};
#[cfg(feature = "std")]
pub use plain_file::PlainFile;
pub use recover::Recovered;
pub use region::{File, MappedRegion, Region, SyncError};
pub use scratch::SCRATCH_LEN;
pub use store::{Stats, Store};
pub use superblock::{Params, Parent, Superblock, VERSION};
#[cfg(any(test, feature = "std"))]
pub use vec_region::VecRegion;
pub use word::unseal;
