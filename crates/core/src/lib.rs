//! The reliability microkernel (RMK, §3): *pins* are mechanism, *modules* are policy, and neither knows the other.
//!
//! ```text
//!        module          module            policy: decides; may fail
//!          │ use_pin, release_pin, issue_cmd, subscr_event, unsubscr_event      (Calls)
//!   ┌──────┴───────────────┴──────┐
//!   │  module manager  dispatcher │        Microkernel
//!   │  pin manager                │
//!   └──────┬───────────────┬──────┘
//!         pin             pin              mechanism: does, and tells; trusted
//! ```
//!
//! A pin has operations, which modules have it perform, and events, which it raises. What goes with either is a
//! [`Payload`]: bytes, so that a module may as well be elsewhere. Events are queued while a module runs and
//! delivered one after the other: no module is ever called from within another, as in RMK.
//!
//! A module is confined ([`confine`]): the core notes which one runs and until when. One that panics is unloaded, and loaded again
//! if it is configured so; one that traps, takes too long or too much memory, and so cannot be left, costs its process, which
//! begins anew in the same place without it.

// A module that is a component is on the other side of all this, and has only the interfaces.
mod interface;

pub use interface::{Interface, Named};

#[cfg(unix)]
mod calls;
#[cfg(unix)]
pub mod confine;
#[cfg(unix)]
mod failure;
#[cfg(unix)]
mod kernel;
#[cfg(unix)]
mod module;
#[cfg(unix)]
mod payload;
#[cfg(unix)]
mod pin;
#[cfg(all(test, unix))]
mod tests;

#[cfg(unix)]
pub use calls::Calls;
#[cfg(unix)]
pub use failure::Failure;
#[cfg(unix)]
pub use kernel::{Microkernel, Notice};
#[cfg(unix)]
pub use module::{Budget, Event, Manifest, Module};
#[cfg(unix)]
pub use payload::Payload;
#[cfg(unix)]
pub use pin::{Make, Pin, PinId};
