//! Kills components, one after the other, and what a crash is seen by.

use std::time::{Duration, Instant};

use outlast_services::processes::{children, template};
use serde::{Deserialize, Serialize};

use crate::load::Load;

/// In the order in which they are killed.
pub const COMPONENTS: [&str; 6] = ["scheduler", "memory", "fs", "lock", "event", "timer"];
/// What is looked at after a crash at most.
pub const AFTER: Duration = Duration::from_secs(2);
/// A bin of the time over which requests are counted.
pub const BIN: u64 = 100_000_000;

/// A component that was killed, in nanoseconds since the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crash {
    pub component: &'static str,
    pub at: u64,
}

/// The middles of all periods of that length that end in time.
pub fn moments(every: Duration, length: Duration) -> Vec<Duration> {
    (0u32..).map(|number| every * number + every / 2).take_while(|moment| *moment + every / 2 <= length).collect()
}

/// Kills components of the server as it is planned, in a time that has gone on to `from`; those that died, and when.
pub fn run(server: u32, planned: &[Crash], from: u64) -> Vec<Crash> {
    let start = Instant::now();
    let now = || from + start.elapsed().as_nanos() as u64;
    let mut crashes = Vec::new();
    for Crash { component, at } in planned.iter().copied() {
        std::thread::sleep(Duration::from_nanos(at.saturating_sub(now())));
        let Some(instance) = template(server, component).and_then(|it| children(it).first().copied()) else { continue };
        let at = now();
        // SAFETY: plain call; the number is that of a process of a server that we started, which waits for it.
        if unsafe { libc::kill(instance as libc::pid_t, libc::SIGKILL) } == 0 {
            crashes.push(Crash { component, at });
        }
    }
    crashes
}

/// The processes that serve now, of all components of the server.
pub fn instances(server: u32) -> Vec<u32> {
    COMPONENTS.iter().filter_map(|component| template(server, component)).flat_map(children).collect()
}

/// What clients see of a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Dip {
    /// The lowest count of a bin that begins there or soon after it, of the median of all.
    pub lowest: f64,
    /// From the moment until requests come again as before, in seconds: until the end of the last bin in a row from there with
    /// less than 90 % of the median.
    pub seconds: f64,
    /// The longest time in which no request was answered, in seconds.
    pub gap: f64,
}

/// Requests in each bin of the time.
pub fn bins(load: &Load, length: Duration) -> Vec<u64> {
    let mut bins = vec![0; (length.as_nanos() as u64 / BIN) as usize];
    for done in &load.done {
        if let Some(bin) = bins.get_mut((done / BIN) as usize) {
            *bin += 1;
        }
    }
    bins
}

/// What is seen of the moment `at` for so long after it.
pub fn dip(load: &Load, length: Duration, at: u64, after: Duration) -> Dip {
    let mut all = bins(load, length);
    all.sort_unstable();
    let median = all.get(all.len() / 2).copied().unwrap_or(0).max(1) as f64;
    // Bins that begin at the moment: one that has begun before it would hide half of what follows.
    let count = |from: u64| {
        let first = load.done.partition_point(|done| *done < from);
        load.done[first..].partition_point(|done| *done < from + BIN) as f64
    };
    let end = (at + after.as_nanos() as u64).min(length.as_nanos() as u64);
    let starts = || (at..(end + 1).saturating_sub(BIN)).step_by(BIN as usize);
    let lowest = starts().map(count).reduce(f64::min).unwrap_or(0.0) / median;
    let low = starts().take_while(|from| count(*from) < 0.9 * median).count() as u64;
    let first = load.done.partition_point(|done| *done < at);
    let mut last = at;
    let mut gap = 0;
    for done in load.done[first..].iter().copied().take_while(|done| *done < end).chain([end]) {
        gap = gap.max(done - last);
        last = done;
    }
    Dip { lowest, seconds: (low * BIN) as f64 / 1e9, gap: gap as f64 / 1e9 }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{bins, dip, moments, AFTER};
    use crate::load::Load;

    #[test]
    fn a_dip_is_seen_where_it_is_and_nowhere_else() {
        // A request each millisecond, none from 2.0 to 2.3 s and half as many for 0.2 s more.
        let silent = |at: &u64| (2_000..2_300).contains(at) || (2_300..2_500).contains(at) && at % 2 == 0;
        let done = (0..5_000).filter(|at| !silent(at)).map(|at| at * 1_000_000).collect();
        let (load, length) = (Load { done, ..Load::default() }, Duration::from_secs(5));
        let counts = bins(&load, length);
        assert_eq!((counts.len(), counts[19], counts[20], counts[23], counts[25]), (50, 100, 0, 50, 100));
        let there = dip(&load, length, 2_000_000_000, AFTER);
        assert!((there.lowest, there.seconds) == (0.0, 0.5) && (0.3..0.303).contains(&there.gap), "{there:?}");
        let before = dip(&load, length, 100_000_000, AFTER);
        assert!(before.seconds == 0.0 && before.gap < 0.12, "{before:?}");
    }

    #[test]
    fn crashes_are_in_the_middle_of_their_periods() {
        let moments = moments(Duration::from_secs(10), Duration::from_secs(60));
        assert_eq!(moments.iter().map(Duration::as_secs).collect::<Vec<_>>(), [5, 15, 25, 35, 45, 55]);
        assert!(super::moments(Duration::from_secs(3), Duration::from_secs(2)).is_empty());
    }
}
