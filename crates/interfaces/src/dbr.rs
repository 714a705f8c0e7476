//! The pin `dbr`: the processor's debug registers (RMK, Table 3). The kernel counts what they meet (perf events of the type `BREAKPOINT`), for all
//! threads of the program and those that they begin, each switched to its own registers. The program is neither stopped nor signalled; each hit costs the
//! thread an exception, some 30 µs in a virtual machine, so that an address that is met all the time slows it.
//!
//! What touches an address is counted whoever does so in the process: also the engine, when it takes the program back in place. A process that
//! goes on from a commit is counted from the moment at which the supervisor sees it run. Threads that begin at the very moment at which watching
//! begins may be missed where others begin and end without a pause.

use crate::named;
use outlast_core::Interface;
use serde::{Deserialize, Serialize};
use std::time::Duration;

pub const NAME: &str = "dbr";

/// Operation: an address is watched. Argument: [`Watch`], result: `u32`, by which it is known. Of the four registers others may have some.
pub const WATCH: &str = "watch";
/// Operation: it is watched no more. Argument: [`Unwatch`].
pub const UNWATCH: &str = "unwatch";

/// Event: it was met since the last look. Payload: [`Hit`].
pub const HIT: &str = "hit";

pub const INTERFACE: Interface = Interface {
    name: NAME,
    what: "hardware breakpoints",
    operations: &[named(WATCH, "an address is watched"), named(UNWATCH, "it is watched no more")],
    events: &[named(HIT, "it was met since the last look")],
};

/// The processor has no more debug registers for addresses.
pub const MOST: usize = 4;

/// What meets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Access {
    Write,
    ReadOrWrite,
    /// The instruction there is executed; the length is 8 then.
    Execute,
}

/// Which address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watch {
    pub program: String,
    /// A multiple of the length, unless it is executed.
    pub address: u64,
    /// 1, 2, 4 or 8 bytes.
    pub length: u32,
    pub access: Access,
    /// How often it is looked whether it was met, at most, and whether the program is another process.
    pub every: Duration,
}

/// Which one no more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unwatch {
    pub program: String,
    pub watch: u32,
}

/// How often it was met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hit {
    pub watch: u32,
    pub process: i32,
    /// Since the last such event.
    pub count: u64,
    /// Since it is watched, also by processes that are dead.
    pub total: u64,
}
