//! What commits took, as the engine has counted it.

use outlast_image::durations::{least, Durations, BUCKETS};
use serde::Serialize;
use std::sync::atomic::Ordering::Relaxed;

/// The counts at some moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted([u32; BUCKETS]);

/// Microseconds that so many of them took at most.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Percentiles {
    pub median: f64,
    pub p99: f64,
}

impl Default for Counted {
    fn default() -> Self {
        Self([0; BUCKETS])
    }
}

impl Counted {
    pub fn of(durations: &Durations) -> Self {
        Self(std::array::from_fn(|n| durations.0[n].load(Relaxed)))
    }

    /// What was counted since `before`, if that was earlier.
    pub fn since(&self, before: &Self) -> Self {
        Self(std::array::from_fn(|n| self.0[n].wrapping_sub(before.0[n])))
    }

    /// None if nothing was counted.
    pub fn percentiles(&self, ns_per_tick: f64) -> Option<Percentiles> {
        let all: u64 = self.0.iter().map(|count| u64::from(*count)).sum();
        let at = |of_thousand: u64| {
            let wanted = (all * of_thousand).div_ceil(1000);
            let mut counted = 0;
            let bucket = self.0.iter().position(|count| {
                counted += u64::from(*count);
                counted >= wanted
            });
            bucket.map(|bucket| {
                let ns = least(bucket + 1) as f64 * ns_per_tick;
                (ns / 10.0).round() / 100.0
            })
        };
        (all > 0).then_some(())?;
        Some(Percentiles { median: at(500)?, p99: at(990)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_image::durations::bucket;

    #[test]
    fn percentiles_are_those_of_what_was_counted_meanwhile() {
        let mut counted = Counted::default();
        counted.0[bucket(1_000_000)] = 5000;
        let before = counted.clone();
        assert_eq!(counted.since(&before).percentiles(1.0), None);
        counted.0[bucket(2_000)] = 98;
        counted.0[bucket(100_000)] = 2;
        let Percentiles { median, p99 } = counted.since(&before).percentiles(1.0).expect("some were counted");
        assert!((2.0..2.6).contains(&median) && (100.0..128.0).contains(&p99), "{median} {p99}");
        assert!(counted.percentiles(1.0).expect("some").median > 1000.0);
    }
}
