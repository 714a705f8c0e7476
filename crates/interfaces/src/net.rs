//! The pin `net`: the program's TCP connections (RMK, Table 3), as the kernel lists them for its network namespace.

use crate::named;
use crate::watch::Look;
use outlast_core::Interface;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

pub const NAME: &str = "net";

/// Operation: they are looked at at intervals. Argument: [`crate::watch::Watch`]. The kernel lists all connections of the namespace for it.
pub const WATCH: &str = "watch";
/// Operation: what they are. Argument: `String`, the program; result: `Vec<Connection>`, at most [`MOST`].
pub const LIST: &str = "list";

/// Event: they were looked at. Payload: [`Measured`].
pub const MEASURED: &str = "measured";

pub const INTERFACE: Interface = Interface {
    name: NAME,
    what: "connections",
    operations: &[named(WATCH, "a program's connections are looked at at intervals"), named(LIST, "what they are")],
    events: &[named(MEASURED, "a program's connections were looked at")],
};

/// So many are listed at most.
pub const MOST: usize = 1024;

/// In which state a connection is, as TCP has them. Connections that nobody has a descriptor of any more are nobody's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum State {
    Established,
    SynSent,
    SynReceived,
    FinWait1,
    FinWait2,
    TimeWait,
    Closed,
    CloseWait,
    LastAck,
    Listening,
    Closing,
    Other,
}

/// A connection, or a socket that listens for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connection {
    /// Of its socket.
    pub inode: u64,
    pub state: State,
    pub local: SocketAddr,
    pub remote: SocketAddr,
    /// Bytes that were sent and not acknowledged, or not sent yet.
    pub unacknowledged: u32,
    /// Bytes that were received and not read; of a socket that listens, connections that were not accepted.
    pub unread: u32,
    /// None: not known, as the program is in another network namespace than its supervisor.
    pub traffic: Option<Traffic>,
}

/// Since it was connected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// Bytes that the other side has acknowledged.
    pub sent: u64,
    /// Bytes.
    pub received: u64,
    /// Segments that were sent again.
    pub retransmits: u64,
}

/// All of them together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    pub look: Look,
    /// How many are in which state; states without any are left out.
    pub states: Vec<(State, u32)>,
    pub unacknowledged: u64,
    pub unread: u64,
    /// Of those that are there; see [`Connection::traffic`].
    pub traffic: Option<Traffic>,
}
