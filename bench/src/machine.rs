//! What the figures were measured on.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Machine {
    pub kernel: String,
    pub processor: String,
    pub processors: usize,
    pub memory_mib: u64,
    /// Load average over a minute when the measurements began: whoever else was running.
    pub load: f64,
    pub user: String,
    /// Of the measured programs, native and protected: as nice values go, less is more.
    pub priority: i32,
}

/// Where it is allowed the measured programs go before whoever else is running, so that a busy machine disturbs less.
const PRIORITY: i32 = -15;

impl Machine {
    /// This one; what is measured from now on has priority if we may give it.
    pub fn prepare() -> Self {
        let raised = rustix::process::setpriority_process(None, PRIORITY);
        let kilobytes = field("/proc/meminfo", "MemTotal").trim_end_matches(" kB").parse::<u64>();
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        Self {
            kernel: kernel(),
            processor: processor(),
            processors: processors(),
            memory_mib: kilobytes.unwrap_or(0) / 1024,
            load: load.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0.0),
            user: crate::user::User::Own.word().into(),
            priority: raised.map_or(0, |()| PRIORITY),
        }
    }

    /// What it is called where it is said of each figure: processors and kernel.
    pub fn name() -> String {
        format!("{} × {}, Linux {}", processors(), processor(), kernel())
    }
}

fn kernel() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

fn processor() -> String {
    field("/proc/cpuinfo", "model name")
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn field(path: &str, name: &str) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(name));
    line.and_then(|line| Some(line.split_once(':')?.1.trim().to_string())).unwrap_or_default()
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kernel, processor, processors, memory_mib, load, user, priority } = self;
        write!(f, "Linux {kernel}, {processors} × {processor}, {memory_mib} MiB, load {load}, ")?;
        write!(f, "run by {user}, nice {priority}")
    }
}
