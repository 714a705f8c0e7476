//! The pin `node`: other nodes whose pins are used here, as `NODE/PIN`.
//!
//! An operation of such a pin is over when the node has answered, or has vanished, or after as long as it takes to have vanished. An event of it
//! is of a program if it is of one there, `NODE/PROGRAM`, so that it is not taken for one here. Events are lost while the node is away.

use crate::named;
use outlast_core::Interface;
use serde::{Deserialize, Serialize};
use std::time::Duration;

pub const NAME: &str = "node";

/// Operation: which nodes there are. Result: `Vec<Node>`.
pub const LIST: &str = "list";

/// Event: a node has been silent for so long that it counts as gone. Payload: [`Vanished`].
pub const VANISHED: &str = "vanished";
/// Event: a node is spoken to, for the first time or again. What pins of it are used and which events are wanted it has been told; what
/// operations have changed there may be forgotten. Payload: [`Returned`].
pub const RETURNED: &str = "returned";

pub const INTERFACE: Interface = Interface {
    name: NAME,
    what: "other nodes, whose pins can be used as NODE/PIN",
    operations: &[named(LIST, "which nodes there are")],
    events: &[
        named(VANISHED, "a node counts as gone"),
        named(RETURNED, "a node is spoken to, for the first time or again"),
    ],
};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    pub name: String,
    pub is_here: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vanished {
    pub node: String,
    pub why: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Returned {
    pub node: String,
    /// How long nothing was heard from it.
    pub after: Duration,
}

/// What a pin of a node is called here.
pub fn pin_of(node: &str, pin: &str) -> String {
    format!("{node}/{pin}")
}
