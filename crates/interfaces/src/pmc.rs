//! The pin `pmc`: what processors have done for the threads of a program.
//!
//! Counted are instructions, as RMK does (Table 3), where the processor counts them and whoever watches may ask; and always processor time, the
//! task clock, which the kernel keeps of every thread anyhow.

use crate::named;
use outlast_core::Interface;
use serde::{Deserialize, Serialize};
use std::time::Duration;

pub const NAME: &str = "pmc";

/// Operation: the threads of a program are looked at at intervals. Argument: [`Watch`].
pub const WATCH: &str = "watch";

/// Event: they were looked at. Payload: `Vec<Count>`, one for each thread.
pub const COUNTED: &str = "counted";

pub const INTERFACE: Interface = Interface {
    name: NAME,
    what: "counts what processors do for threads",
    operations: &[named(WATCH, "a program's threads are looked at at intervals")],
    events: &[named(COUNTED, "a program's threads were looked at")],
};

pub use crate::watch::Watch;

/// A thread, somewhere between two system calls or in one. What it does from a call on to its next one is a code section that is entered where
/// the first returns and left where the next returns, so that a program is made of sections without having been changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// What the kernel calls the thread.
    pub thread: i32,
    /// The section: the address to which its last call returns, or has returned.
    pub section: u64,
    /// How many calls it has made: as long as this is the same it has not left the section.
    pub run: u64,
    /// So far.
    pub spent: Spent,
    /// How often it got a processor.
    pub slices: u64,
    pub activity: Activity,
    /// It sleeps until another one gives this up.
    pub wait: Option<Wait>,
}

/// What a thread has computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// Processor time.
    pub time: Duration,
    /// Since they are counted; none: they are not.
    pub instructions: Option<u64>,
}

impl Spent {
    /// As much processor time.
    pub fn time(time: Duration) -> Self {
        Self { time, instructions: None }
    }

    /// By this one is more than another: instructions, or time where they are not counted. All of a program are counted in the same way.
    pub fn amount(self) -> u128 {
        self.instructions.map_or(self.time.as_nanos(), u128::from)
    }

    /// More than there was by then.
    pub fn since(self, then: Self) -> Self {
        let instructions = self.instructions.zip(then.instructions).map(|(now, then)| now.saturating_sub(then));
        Self { time: self.time.saturating_sub(then.time), instructions }
    }
}

/// What a thread is about, by what the kernel says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Activity {
    /// It runs, or could.
    Runs,
    /// It waits for what it has asked for, as calls do.
    Waits,
    /// It waits in the kernel for what cannot be interrupted, storage as a rule.
    Stuck,
    /// Somebody stopped it, traces it or has frozen its group: it goes on when that person wants it to.
    Held,
}

/// What a thread waits for, without a time-out, that another one has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    pub lock: Lock,
    /// Where it is.
    pub at: u64,
    /// The thread that has it.
    pub owner: i32,
}

/// Locks that say who has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Lock {
    Mutex,
    /// For writing. Of its readers it keeps only how many they are.
    ReadWriteLock,
}
