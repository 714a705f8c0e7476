//! Settings of the module `oshang`, which protects the machine rather than a program.

use serde::{Deserialize, Serialize};
use std::time::Duration;

pub const NAME: &str = "oshang";
/// What the machine is called among programs.
pub const MACHINE: &str = "the machine";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// How often processors are looked at.
    pub every: Duration,
    /// No slice counts as a hang that took less processor time. The paper's default check value (§4.1).
    pub threshold: Duration,
    /// A check value is never larger: the natural bound that a time slice has.
    pub bound: Duration,
    /// So long nothing at all may go on: five seconds, the paper's time-out for halted processors and threads that are not scheduled (§4.1, §5.1),
    /// unless another threshold is wished.
    pub timeout: Duration,
}

impl Settings {
    /// With the smallest check value that is wanted.
    pub fn with_threshold(threshold: Duration) -> Self {
        // It is looked at once before that is over.
        let every = (threshold / 2).clamp(Duration::from_millis(10), Duration::from_millis(250));
        Self { every, threshold, bound: threshold * 4, timeout: threshold * 10 }
    }
}

impl Default for Settings {
    /// A time slice is a few milliseconds; a real-time thread may keep others waiting for 0.95 s, by the kernel's defaults.
    fn default() -> Self {
        Self::with_threshold(Duration::from_millis(500))
    }
}
