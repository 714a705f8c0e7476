//! How many generations are kept, and which.

use serde::{Deserialize, Serialize};
use std::str::FromStr;
use std::time::Duration;

/// What `--generations` says. Times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// A generation this often.
    pub every_ns: u64,
    /// None that is older than this, but the newest.
    pub keep_ns: u64,
    /// Bytes of all of them together.
    pub budget: u64,
}

const HOUR: Duration = Duration::from_secs(3600);
const MIB: u64 = 1 << 20;

impl FromStr for Policy {
    type Err = String;

    /// `EVERY[:FOR[:BUDGET]]`, as in `10s:1h:256MiB`; the last two are the defaults.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split(':');
        let time = |part: &str| match humantime::parse_duration(part) {
            Ok(time) if !time.is_zero() => u64::try_from(time.as_nanos()).map_err(|_| format!("{part} is too long")),
            Ok(_) => Err("a time must not be zero".into()),
            Err(_) => Err(format!("{part:?} is no time; write it as 10s, 5m or 1h")),
        };
        let every_ns = time(parts.next().unwrap_or_default())?;
        let keep_ns = parts.next().map_or(Ok(HOUR.as_nanos() as u64), time)?;
        let budget = parts.next().map_or(Ok(256 * MIB), bytes)?;
        match parts.next() {
            Some(_) => Err("write it as EVERY:FOR:BUDGET, for example 10s:1h:256MiB".into()),
            None if keep_ns < every_ns => Err("generations must be kept longer than from one to the next".into()),
            None => Ok(Self { every_ns, keep_ns, budget }),
        }
    }
}

fn bytes(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 13] = [
        ("KiB", 1 << 10),
        ("MiB", MIB),
        ("GiB", 1 << 30),
        ("TiB", 1 << 40),
        ("kB", 1000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
        ("K", 1 << 10),
        ("M", MIB),
        ("G", 1 << 30),
        ("T", 1 << 40),
        ("", 1),
    ];
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor);
    let size = number.parse::<u64>().ok().zip(factor).and_then(|(number, factor)| number.checked_mul(factor));
    size.filter(|size| *size > 0).ok_or_else(|| format!("{text:?} is no size; write it as 256MiB or 2GiB"))
}

/// Generations of one age are kept so far apart: an eighth of their age.
const SHARE: u64 = 8;

/// So many always stay, if they are not too old.
const NEWEST: usize = 32;

/// Which generations to give up, of those that were kept at these times (ascending, in microseconds): those that are too old,
/// and of all but the newest 32 those that lie closer to the one before than an eighth of their age. The newest always stays.
pub fn surplus(times: &[u64], now: u64, policy: &Policy) -> Vec<usize> {
    let Some(newest) = times.len().checked_sub(1) else { return Vec::new() };
    let keep = policy.keep_ns / 1000;
    let (mut gone, mut before) = (Vec::new(), None);
    for (n, time) in times.iter().enumerate() {
        let age = now.saturating_sub(*time);
        let is_old = n + NEWEST < times.len();
        let close = before.is_some_and(|before: u64| is_old && time.saturating_sub(before) < age / SHARE);
        if n != newest && (age > keep || close) {
            gone.push(n);
        } else {
            before = Some(*time);
        }
    }
    gone
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000;

    #[test]
    fn what_people_write_is_understood() {
        let policy = |every: u64, keep: u64, budget| Policy {
            every_ns: every * 1_000_000_000,
            keep_ns: keep * 1_000_000_000,
            budget,
        };
        assert_eq!("10s".parse(), Ok(policy(10, 3600, 256 * MIB)));
        assert_eq!("1m:1day".parse(), Ok(policy(60, 86400, 256 * MIB)));
        assert_eq!("10s:1h:2GiB".parse(), Ok(policy(10, 3600, 2 << 30)));
        assert_eq!("10s:1h:2G".parse::<Policy>(), "10s:1h:2GiB".parse());
        for wrong in ["", "10", "0s", "10s:", "10s:1h:", "10s:1h:0", "10s:1h:5 bananas", "1h:10s", "10s:1h:1G:2", ":"] {
            assert!(wrong.parse::<Policy>().is_err(), "{wrong}");
        }
        assert!("10s:1h:99999999999999999999G".parse::<Policy>().is_err());
        assert!("10s:1h:18446744073709551615T".parse::<Policy>().is_err());
    }

    /// Keeps one every ten seconds for two hours.
    fn kept_after(seconds: u64, policy: &Policy) -> Vec<u64> {
        let mut times: Vec<u64> = Vec::new();
        for now in (0..=seconds).step_by(10) {
            times.push(now * SECOND);
            let gone = surplus(&times, now * SECOND, policy);
            times = times.iter().enumerate().filter(|(n, _)| !gone.contains(n)).map(|(_, time)| *time).collect();
        }
        times.iter().map(|time| seconds - time / SECOND).collect()
    }

    #[test]
    fn the_young_are_many_and_the_old_are_few() {
        let policy = "10s:1h".parse().unwrap();
        let ages = kept_after(7200, &policy);
        assert_eq!(&ages[ages.len() - 5..], [40, 30, 20, 10, 0]);
        assert!(ages.len() < 75, "{} are kept: {ages:?}", ages.len());
        assert!(ages[0] > 2700 && ages[0] <= 3600, "the oldest is {} s old", ages[0]);
        for wanted in [30, 60, 300, 900, 1800, 2700] {
            // Nobody who asks for an age gets one that is twice as old.
            let found = ages.iter().rev().find(|age| **age >= wanted).unwrap();
            assert!(*found <= wanted * 3 / 2, "for {wanted} s there is {found}: {ages:?}");
        }
    }

    #[test]
    fn the_newest_stays_however_old_it_is() {
        let policy = "10s:1m".parse().unwrap();
        assert_eq!(surplus(&[0, 10 * SECOND], 10_000 * SECOND, &policy), [0]);
        assert!(surplus(&[], 5, &policy).is_empty());
    }

    #[test]
    fn a_clock_that_goes_back_harms_nobody() {
        let policy = "10s:1m".parse().unwrap();
        assert!(surplus(&[50 * SECOND, 60 * SECOND, 70 * SECOND], 0, &policy).is_empty());
    }
}
