//! Progress of the ring operation that the last commit stands before, in memory that outlives the process.

use bytemuck::{Pod, Zeroable};

/// Identifier of part `part` of the operation committed as `seq`: what goes into an entry's `user_data`.
pub const fn operation_id(seq: u64, part: u16) -> u64 {
    (seq << 16) | part as u64
}

/// Calls of other threads that a commit stands before, at most.
pub const MEMBERS: usize = 7;

/// Identifier of the `n`th call of another thread that commit `seq` stands before. A part of so high a number the committing
/// thread's own call has, if ever, long after these calls are made.
pub const fn joined_id(seq: u64, n: usize) -> u64 {
    operation_id(seq, 0x4000 + n as u16)
}

/// One of two slots; the one with the larger `id` of the current sequence number counts.
///
/// Written data first, `id` last, so that a kill between the two leaves the other slot valid.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub struct Progress {
    /// Operation the progress was made up to (its completion was seen).
    pub id: u64,
    /// Bytes transferred by all parts so far.
    pub done: u64,
    /// Checksum over `id` and `done`: `id ^ done ^ PROGRESS_MARK`.
    pub check: u64,
    pub reserved: u64,
}

/// See [`Progress::check`].
pub const PROGRESS_MARK: u64 = 0x6f75_746c_6173_7431;
