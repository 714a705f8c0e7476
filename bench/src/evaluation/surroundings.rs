//! Who else used the machine while something was measured: what the figures must be read with.

use crate::machine::Machine;
use serde::{Deserialize, Serialize};
use std::fs;
use std::time::{Instant, SystemTime};

/// Of the whole machine, over the time of one section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Surroundings {
    /// Processors and kernel: parts of a page may come from several machines.
    pub machine: String,
    /// RFC 3339, UTC.
    pub began: String,
    /// Seconds.
    pub took: f64,
    /// Load average over a minute, before and after; the measured programs are in the latter.
    pub load: [f64; 2],
    /// Of the processors' time, the percentage that the host gave to others.
    pub steal: f64,
    /// Percentage of the time in which some process waited for a processor; none where the kernel does not tell.
    pub waited: Option<f64>,
}

/// Counters of the kernel at one moment.
pub struct Watch {
    began: (SystemTime, Instant),
    load: f64,
    ticks: Ticks,
    waited_us: Option<f64>,
}

/// Of the first line of `/proc/stat`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Ticks {
    all: u64,
    stolen: u64,
}

fn read(path: &str) -> String {
    // What the kernel does not tell reads as nothing.
    fs::read_to_string(path).unwrap_or_default()
}

fn load() -> f64 {
    read("/proc/loadavg").split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0.0)
}

fn ticks(stat: &str) -> Ticks {
    let line = stat.lines().next().unwrap_or_default();
    // user nice system idle iowait irq softirq steal; what follows is contained in the first two.
    let numbers: Vec<u64> = line.split_whitespace().skip(1).take(8).filter_map(|word| word.parse().ok()).collect();
    Ticks { all: numbers.iter().sum(), stolen: numbers.get(7).copied().unwrap_or(0) }
}

/// Microseconds in which some process waited, since the machine was booted.
fn waited(pressure: &str) -> Option<f64> {
    pressure.lines().find(|line| line.starts_with("some "))?.rsplit_once("total=")?.1.parse().ok()
}

impl Watch {
    pub fn begin() -> Self {
        Self {
            began: (SystemTime::now(), Instant::now()),
            load: load(),
            ticks: ticks(&read("/proc/stat")),
            waited_us: waited(&read("/proc/pressure/cpu")),
        }
    }

    pub fn end(self) -> Surroundings {
        let (now, took) = (ticks(&read("/proc/stat")), self.began.1.elapsed().as_secs_f64());
        let share = (now.stolen - self.ticks.stolen) as f64 / (now.all - self.ticks.all).max(1) as f64;
        let waited = waited(&read("/proc/pressure/cpu")).zip(self.waited_us);
        Surroundings {
            machine: Machine::name(),
            began: humantime::format_rfc3339_seconds(self.began.0).to_string(),
            took,
            load: [self.load, load()],
            steal: share * 100.0,
            waited: waited.map(|(after, before)| (after - before) / 1e4 / took),
        }
    }
}

/// When it was measured, and who else used the machine.
pub fn in_words(surroundings: Option<&Surroundings>) -> String {
    let Some(Surroundings { machine, began, took, load, steal, waited }) = surroundings else {
        return "Not measured in this run.\n".into();
    };
    let waited = waited.map_or(String::new(), |share| {
        format!(", and in {share:.0} % of the time some process waited for a processor")
    });
    format!(
        "Measured on {machine} from {began} on for {took:.0} s: load {:.2} before and {:.2} after, {steal:.1} % of the processors' time stolen by the host{waited}.\n",
        load[0], load[1]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_time_is_the_eighth_number() {
        let stat = "cpu  10 20 30 40 5 6 7 8 9 10\ncpu0 1 1 1 1 1 1 1 1 1 1\n";
        assert_eq!(ticks(stat), Ticks { all: 126, stolen: 8 });
        assert_eq!(ticks(""), Ticks::default());
    }

    #[test]
    fn pressure_is_that_of_some() {
        let text =
            "some avg10=1.00 avg60=2.00 avg300=3.00 total=12345\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";
        assert_eq!(waited(text), Some(12345.0));
        assert_eq!(waited("nothing"), None);
    }
}
