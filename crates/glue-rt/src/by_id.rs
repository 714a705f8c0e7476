//! Maps whose keys are ids of descriptors: these are handed out by services, not chosen by clients, so that a hash need not be secret.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

pub type ById<T> = HashMap<u64, T, BuildHasherDefault<Spread>>;

/// Ids are small numbers: a multiplication spreads them.
#[derive(Default)]
pub struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}
