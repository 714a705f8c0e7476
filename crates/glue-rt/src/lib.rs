//! The runtime of components. A component is a process of its own that serves calls, and that is micro-rebooted when it
//! crashes or hangs; what its clients had there is brought back by their stubs, which `glue` writes.
//!
//! ```text
//!   system (manager)      starts templates, hands out channels, restarts a template that died
//!      │ parent of
//!   template              the pristine image: booted once, single-threaded; forks an instance, waits for its death,
//!      │ parent of        tells the clients (a new epoch), forks the next
//!   instance              boot thread + one worker for each thread of a client that calls
//!      ║ channel          memory shared by one client and one component: a slot for each calling thread
//!   client                generated stub over `Channel` and `Descriptors`
//! ```
//!
//! Invariants:
//! - The service runs under one lock, the monitor, and **a reply is published before the monitor is left**: whatever another
//!   thread can have seen of a call, its caller has got the reply to. So a call whose reply is missing had no effect that
//!   anyone knows of, died with the instance's memory, and is made again.
//! - The monitor numbers calls in the order of their effects; descriptors are tracked by that order, not by that of arrival.
//! - What outlives an instance (registry, storage) is changed so that a call without a published reply can be undone, and the
//!   template undoes it before the next instance begins. It decides that once: a slot says whether its last call was published
//!   only until the next one is made there.
//! - Nothing that comes through a channel is believed: words are read once and checked, by either side.
//! - Neither manager nor template ever waits for a component to do something.

pub mod buffer;
mod by_id;
pub mod channel;
mod clock;
pub mod component;
pub mod descriptor;
pub mod error;
mod futex;
pub mod keeping;
mod layout;
pub mod mapping;
mod memory;
mod passage;
mod policy;
mod processor;
pub mod registry;
mod restorer;
pub mod sound;
pub mod storage;
mod succession;
pub mod system;
pub mod word;

pub use buffer::{Buffer, Lent};
pub use channel::{Channel, Interrupted, Reply, Request};
pub use component::{run, Call, Component, Operation, Point, Stop};
pub use descriptor::{Descriptor, Descriptors, Held, Inner};
pub use error::CallError;
pub use keeping::{Happened, Keeping, Tell};
pub use layout::{CHANNELS, EAGER, RECOVERED, RECREATE, TRY};
pub use mapping::{Mapped, Mappings, Unusable};
pub use restorer::Restorer;
pub use sound::sound;
pub use storage::{ResourceError, Resources};
pub use system::{Grant, Handle, Spec, System, SystemError};
pub use word::Word;
