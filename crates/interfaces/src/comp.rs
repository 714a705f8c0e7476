//! The pin `comp`: components that are micro-rebooted. Not in RMK's Table 3. The program that an event is about is a component, by
//! the name that its manager gave it.
//!
//! What is to be done about a death is decided by the first command about it that a module issues while it is told of [`DIED`]; later
//! ones are refused.

use crate::named;
use crate::proc::End;
use outlast_core::Interface;
use serde::{Deserialize, Serialize};
use std::time::Duration;

pub const NAME: &str = "comp";

/// Operation: the next instance is forked. No argument.
pub const REBOOT: &str = "reboot";
/// Operation: there will be none any more, and clients are told. Argument: `String`, why.
pub const GIVE_UP: &str = "give_up";
/// Operation: the same for all components of the system. Argument: `String`, why.
pub const END: &str = "end";

/// Operation: the calls of a component are looked at at intervals. Argument: `Duration`, the time between two looks.
pub const WATCH: &str = "watch";
/// Operation: an instance hangs, and is to end for that. Argument: [`Hang`]. While the module is told of [`LOOKED`].
pub const FLAG: &str = "flag";

/// Event: an instance ended. Payload: [`Death`].
pub const DIED: &str = "died";
/// Event: calls are under way, and were looked at. Payload: [`Look`].
pub const LOOKED: &str = "looked";
/// Event: an instance hangs, and is ended for that. Payload: [`Hang`].
pub const HUNG: &str = "hung";
/// Event: an instance takes calls. Payload: [`Serves`].
pub const SERVES: &str = "serves";
/// Event: no instance will come any more. No payload.
pub const GIVEN_UP: &str = "given_up";

pub const INTERFACE: Interface = Interface {
    name: NAME,
    what: "components that are micro-rebooted",
    operations: &[
        named(REBOOT, "the next instance is forked"),
        named(GIVE_UP, "there will be none any more, and clients are told"),
        named(END, "the same for all components of the system"),
        named(WATCH, "the calls of a component are looked at at intervals"),
        named(FLAG, "an instance hangs, and is to end for that"),
    ],
    events: &[
        named(DIED, "an instance ended"),
        named(LOOKED, "calls are under way, and were looked at"),
        named(HUNG, "an instance hangs, and is ended for that"),
        named(SERVES, "an instance takes calls"),
        named(GIVEN_UP, "no instance will come any more"),
    ],
};

/// The end of an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Death {
    pub process: i32,
    /// None: nobody knows how it ended.
    pub end: Option<End>,
    /// It was ended because it hung.
    pub hung: bool,
    /// Calls that it had completed.
    pub completed: u64,
    /// It had come to take calls.
    pub started: bool,
    /// A call was being executed, not blocked.
    pub wanted: bool,
    pub lived: Duration,
    /// Descriptors of its clients that it knew.
    pub descriptors: u32,
    /// So many had been brought back from the instance before it.
    pub recovered: u32,
}

/// An instance that takes calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Serves {
    pub process: i32,
    /// Since the death of the one before was noticed; of the first, since its program was started.
    pub took: Duration,
    /// The first of all.
    pub is_first: bool,
}

/// What an instance was about at a moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Look {
    /// On CLOCK_MONOTONIC.
    pub at: Duration,
    /// Calls that it had completed.
    pub completed: u64,
    /// Those under way, but for such as wait until somebody wakes them, or for a client.
    pub calls: Vec<Call>,
}

/// A call that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// Where it was made; no other call is under way there.
    pub place: u32,
    /// The next one that is made there has another.
    pub number: u32,
    /// Its place in the interface.
    pub operation: u32,
    /// It waits, and is to go on by then at the latest, on the clock of the look; none: it does not wait, and ought to end.
    pub waits_until: Option<Duration>,
}

/// A call that does not end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hang {
    /// What was called.
    pub operation: u32,
    pub why: Stays,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stays {
    /// It is under way, and for so long no call has ended.
    Still(Duration),
    /// It has been under way for so long, while others ended.
    Alone(Duration),
    /// It was to go on so long ago.
    Overdue(Duration),
}

/// What is to be done about a death.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    Reboot,
    GiveUp(String),
    End(String),
}
