//! The pin `channel`: other nodes that use pins of this one. What they may is checked before it gets here.

use crate::named;
use outlast_core::{Interface, Payload};
use serde::{Deserialize, Serialize};

pub const NAME: &str = "channel";

/// Operation: what a node has asked for was done, or not. Argument: [`Answered`].
pub const ANSWER: &str = "answer";
/// Operation: a node is told of an event. Argument: [`Told`].
pub const TELL: &str = "tell";

/// Event: a node asks for something. Payload: [`Asked`].
pub const ASKED: &str = "asked";
/// Event: a node has gone, and needs nothing any more. Payload: `u64`, its number.
pub const GONE: &str = "gone";

pub const INTERFACE: Interface = Interface {
    name: NAME,
    what: "other nodes that use pins of this one",
    operations: &[named(ANSWER, "what a node asked for was done, or not"), named(TELL, "a node is told of an event")],
    events: &[named(ASKED, "a node asks for something"), named(GONE, "a node has gone")],
};

/// The calls of a module, made by one that is elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Call {
    Use,
    Release,
    Command { operation: String, argument: Payload },
    Subscribe { event: String },
    Unsubscribe { event: String },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// A number that no other one has had.
    pub node: u64,
    /// Of the question.
    pub id: u64,
    pub pin: String,
    pub call: Call,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answered {
    pub node: u64,
    pub id: u64,
    /// The result of a command, nothing of the others; or why there is none.
    pub result: Result<Option<Payload>, String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    pub node: u64,
    pub pin: String,
    pub event: String,
    pub program: Option<String>,
    pub payload: Payload,
}
