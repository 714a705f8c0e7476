//! How often what took how long, in ticks of the time stamp counter: what the engine counts and the supervisor reads.
//!
//! Four buckets an octave, so that none is wider than a fifth of what it counts. One line of the cache is written for each count, and
//! nothing is locked.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Shorter ones are in the first bucket.
const LEAST: u32 = 6;
/// Longer ones are in the last one: minutes.
const OCTAVES: u32 = 32;
/// As bits.
const PARTS: u32 = 2;

pub const BUCKETS: usize = (OCTAVES << PARTS) as usize;

/// Counts, which wrap around.
#[repr(C)]
pub struct Durations(pub [AtomicU32; BUCKETS]);

impl Durations {
    /// By the one who counts: there are no two at a time.
    #[inline(always)]
    pub fn count(&self, ticks: u64) {
        let bucket = &self.0[bucket(ticks)];
        bucket.store(bucket.load(Relaxed).wrapping_add(1), Relaxed);
    }
}

/// Where it is counted.
#[inline(always)]
pub fn bucket(ticks: u64) -> usize {
    let ticks = ticks.max(1 << LEAST);
    let octave = ticks.ilog2();
    let part = (ticks >> (octave - PARTS)) & ((1 << PARTS) - 1);
    ((u64::from(octave - LEAST) << PARTS | part) as usize).min(BUCKETS - 1)
}

/// The least that is counted there.
pub fn least(bucket: usize) -> u64 {
    let (octave, part) = (bucket as u32 >> PARTS, bucket as u64 & ((1 << PARTS) - 1));
    ((1 << PARTS) + part) << (octave + LEAST - PARTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_duration_is_between_the_bounds_of_its_bucket() {
        for shift in LEAST..38 {
            for ticks in [1 << shift, (1 << shift) + 1, (5 << shift) / 4, (7 << shift) / 4, (2 << shift) - 1] {
                let at = bucket(ticks);
                assert!(least(at) <= ticks && (ticks < least(at + 1) || at == BUCKETS - 1), "{ticks} in {at}");
            }
        }
        assert_eq!((bucket(0), bucket(u64::MAX)), (0, BUCKETS - 1));
    }
}
