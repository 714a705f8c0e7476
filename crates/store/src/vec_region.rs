//! A region in memory of this process: for tests, and for looking at a copy.

use crate::region::{Region, SyncError};
use std::vec::Vec;

/// Bytes in a vector.
pub struct VecRegion(Vec<u8>);

impl VecRegion {
    /// Zeroes.
    pub fn new(len: u64) -> VecRegion {
        VecRegion(std::vec![0; len as usize])
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl From<Vec<u8>> for VecRegion {
    fn from(bytes: Vec<u8>) -> VecRegion {
        VecRegion(bytes)
    }
}

impl From<VecRegion> for Vec<u8> {
    fn from(region: VecRegion) -> Vec<u8> {
        region.0
    }
}

impl Region for VecRegion {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read(&self, off: u64, into: &mut [u8]) {
        into.copy_from_slice(&self.0[off as usize..][..into.len()]);
    }

    fn write(&mut self, off: u64, bytes: &[u8]) {
        self.0[off as usize..][..bytes.len()].copy_from_slice(bytes);
    }

    fn publish(&mut self, off: u64, value: u64) {
        self.write(off, &value.to_le_bytes());
    }

    fn load(&self, off: u64) -> u64 {
        let mut word = [0; 8];
        self.read(off, &mut word);
        u64::from_le_bytes(word)
    }

    fn discard(&mut self, off: u64, len: u64) {
        self.0[off as usize..][..len as usize].fill(0);
    }

    fn sync(&mut self, _off: u64, _len: u64) -> Result<(), SyncError> {
        Ok(())
    }
}
