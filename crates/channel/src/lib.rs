//! The communication channel of RMK (§3): modules of one node use pins of another.
//!
//! ```text
//!   module ── pin NODE/x ── Remote ──┐                        ┌── Visit ── module peers ── pin x
//!                                 Calling ══ TLS 1.3, TCP ══ Serving
//!   module ◀── events ───── News ────┘                        └── Hub ◀─── events
//! ```
//!
//! One thread on each node has all connections. Whoever connects asks, whoever was connected to answers and tells; two nodes that
//! use each other have two connections. Each is known by its key, and what it may use is written in the other's file
//! ([`Nodes`]). A node that has been silent for a *patience* has vanished; it is sought on, and told again what is wanted of
//! it when it has returned.
//!
//! Whatever comes in is untrusted: frames, names, open questions, unread bytes and connections that have not said who they are are bounded, and
//! who goes beyond is disconnected.

mod calling;
mod channel;
pub mod frame;
mod key;
mod link;
mod may;
mod news;
mod nodes;
mod ready;
mod remote;
mod serving;
mod status;
#[cfg(test)]
mod tests;
mod tls;
mod work;

pub use calling::News;
pub use channel::{Channel, Error, Hub, To};
pub use key::{Key, KeyError, PublicKey};
pub use may::May;
pub use news::{queue, Out};
pub use nodes::{Node, Nodes, Refusal};
pub use remote::Remote;
pub use serving::Visit;
pub use status::{Standing, Status};
