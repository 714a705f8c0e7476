//! The pin `schl`: context switches, added up for each processor before a module hears of them.
//!
//! RMK (Table 3) raises an event at each switch. Here the kernel's own counts are looked at at intervals: a program of ours at every
//! switch takes some hundredths of the time of threads that do nothing but wake each other, a look takes the same however
//! often they do.

use crate::named;
use outlast_core::Interface;
use serde::{Deserialize, Serialize};
use std::time::Duration;

pub const NAME: &str = "schl";

/// Operation: processors and protected programs are looked at at intervals. Argument: `Duration`.
pub const WATCH: &str = "watch";
/// Operation: a thread of ours is to run on this processor once, so that somebody waits there. Argument: `u32`.
pub const PROBE: &str = "probe";
/// Operation: something does not run, and a person is to be told. Argument: [`Flagged`]. While the module is told of [`SWITCHED`].
pub const FLAG: &str = "flag";

/// Event: they were looked at. Payload: [`Look`].
pub const SWITCHED: &str = "switched";

pub const INTERFACE: Interface = Interface {
    name: NAME,
    what: "context switches of each processor",
    operations: &[
        named(WATCH, "processors and protected programs are looked at at intervals"),
        named(PROBE, "a thread of ours is to run on a processor once"),
        named(FLAG, "something does not run, and a person is to be told"),
    ],
    events: &[named(SWITCHED, "they were looked at")],
};

/// What was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Look {
    /// On a clock that does not go back, nor on while the machine sleeps.
    pub at: Duration,
    /// The processors that are there; of none where that cannot be known.
    pub processors: Vec<Processor>,
    /// Threads of protected programs that want to run, or do; none: they were not looked at this time.
    pub threads: Option<Vec<Thread>>,
}

/// A processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Processor {
    pub number: u32,
    /// Context switches so far.
    pub switches: u64,
    /// How many threads could run there and wait for that.
    pub waiting: u32,
    /// Who runs there; none: it is idle.
    pub runs: Option<Running>,
    /// Whether who runs there, a look or the kernel's own thread that stops processors, has it from a real-time thread for a moment only.
    pub is_preempted: bool,
}

/// Who runs on a processor, by the numbers that the kernel has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Running {
    pub thread: i32,
    pub process: i32,
    /// Processor time so far, as the timer's ticks found it in user mode, and in the kernel. Time that the hypervisor gave to others is in neither.
    pub user: Duration,
    pub kernel: Duration,
    pub is_realtime: bool,
    /// How often it has given up the processor by itself so far.
    pub yields: u64,
}

/// A thread of a protected program that could run or runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thread {
    /// What its program is called.
    pub program: String,
    pub process: i32,
    pub thread: i32,
    /// Processor time so far, and how often it got a processor.
    pub ran: Duration,
    pub slices: u64,
    pub processor: u32,
}

/// What a person is to be told of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flagged {
    /// The node where it is so; none: this one.
    pub node: Option<String>,
    pub what: Starved,
}

/// What does not run although it could.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Starved {
    /// Threads wait for a processor that does not switch.
    Processor { number: u32, waiting: u32, runs: Option<Running>, why: Stays },
    /// A thread of a protected program has waited for this long.
    Thread { thread: Thread, waited: Duration },
}

/// Why a processor is taken not to switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stays {
    /// Who runs has computed there for so long while others waited, of it in user mode; more than the check value.
    Computes { count: Duration, in_user_mode: Duration, check: Duration },
    /// Nothing at all was counted there for so long: it is halted, its interrupts are off, or the hypervisor does not run it.
    Stands { since: Duration },
}
