//! The pin `ipc`: what the program's threads and others pass through pipes, and for whom its threads wait (RMK, Table 3).
//!
//! A pipe's fill is asked of a copy of the program's descriptor, which the supervisor has for some microseconds: a close by the program that falls
//! into them takes effect at their end.

use crate::named;
use crate::pmc::Wait;
use crate::watch::Look;
use outlast_core::Interface;
use serde::{Deserialize, Serialize};

pub const NAME: &str = "ipc";

/// Operation: its pipes and locks are looked at at intervals. Argument: [`crate::watch::Watch`].
pub const WATCH: &str = "watch";
/// Operation: its pipes. Argument: `String`, the program; result: `Vec<Pipe>`, at most [`MOST`].
pub const LIST: &str = "list";

/// Event: they were looked at. Payload: [`Measured`].
pub const MEASURED: &str = "measured";

pub const INTERFACE: Interface = Interface {
    name: NAME,
    what: "pipes, and who waits for whom",
    operations: &[named(WATCH, "a program's pipes and locks are looked at at intervals"), named(LIST, "its pipes")],
    events: &[named(MEASURED, "a program's pipes and locks were looked at")],
};

/// So many pipes are looked at at most: those with the lowest descriptors.
pub const MOST: usize = 256;

/// A descriptor of a pipe, or of a FIFO that has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pipe {
    pub descriptor: i32,
    /// The same for both ends.
    pub inode: u64,
    /// Whether this end writes; else it reads.
    pub writes: bool,
    /// Bytes that were written and not read.
    pub fill: u32,
    /// Bytes that fit.
    pub size: u32,
}

/// What was seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    pub look: Look,
    pub pipes: Vec<Pipe>,
    /// Threads that wait for a lock of the C library, and who has it: seen once, so that it may be over.
    pub waits: Vec<(i32, Wait)>,
}
