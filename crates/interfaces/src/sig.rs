//! The pin `sig`: signals to the program (RMK, Table 3). What goes past the supervisor, from one process to the other, it does not see: the engine
//! takes these signals, and tells of those only that would have ended the program.

use crate::named;
use outlast_core::Interface;
use serde::{Deserialize, Serialize};
use std::time::Duration;

pub const NAME: &str = "sig";

/// Operation: a signal is sent to the program. Argument: [`Send`].
pub const SEND: &str = "send";
/// Operation: which signals are blocked, and which wait. Argument: `String`, the program; result: `Vec<Masks>`, one for each thread.
pub const MASKS: &str = "masks";

/// Event: the supervisor passed a signal on that it was sent itself. Payload: [`Told`].
pub const DELIVERED: &str = "delivered";
/// Event: a signal would have ended the program, which went back to its last commit in place, or has ended its process. Payload: [`Told`].
pub const FATAL: &str = "fatal";

pub const INTERFACE: Interface = Interface {
    name: NAME,
    what: "signals sent to programs",
    operations: &[
        named(SEND, "a signal is sent to the program"),
        named(MASKS, "which signals are blocked, and which wait"),
    ],
    events: &[named(DELIVERED, "a signal was passed on"), named(FATAL, "a signal was fatal")],
};

/// What to send.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Send {
    pub program: String,
    /// One of its threads, by the number that the kernel has for it outside; none: whichever does not block it.
    pub thread: Option<i32>,
    /// 1..=63: the last one is the engine's.
    pub signal: i32,
}

/// What the kernel has for a thread, each a mask with signal 1 in the lowest bit. What the engine has taken and holds back is not in it, and
/// what the program blocks is there only as far as the engine leaves that to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Masks {
    pub thread: i32,
    pub blocked: u64,
    /// For this thread.
    pub pending: u64,
    /// For the whole process.
    pub shared_pending: u64,
}

/// A signal that met the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    pub signal: i32,
    /// Since some moment before, on a clock that does not go back.
    pub at: Duration,
    /// Whether the process lives on.
    pub survived: bool,
}
