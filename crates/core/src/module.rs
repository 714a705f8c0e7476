//! Modules: what they are told and what the core knows of each.

use crate::calls::Calls;
use crate::failure::Failure;
use crate::payload::Payload;
use std::time::Duration;

/// A policy.
///
/// None of these is called while another of any module runs.
pub trait Module {
    /// Asks for pins and subscribes to events.
    ///
    /// # Errors
    /// It cannot work here. It is not loaded then, and whatever it asked for is taken back.
    fn start(&mut self, calls: &mut Calls) -> Result<(), Failure>;

    /// A program is to be protected, in the way that `settings` say; their type is the module's own.
    ///
    /// # Errors
    /// The settings are not ones of this module. The program is not protected by it then.
    fn protect(&mut self, calls: &mut Calls, program: &str, settings: &Payload) -> Result<(), Failure>;

    /// A program is to be protected no longer.
    fn release(&mut self, _calls: &mut Calls, _program: &str) {}

    /// Something happened that the module has subscribed to: of a program that it protects, or of none.
    ///
    /// # Errors
    /// What it tried was not possible. This goes to the notices; it stays loaded.
    fn on_event(&mut self, calls: &mut Calls, event: &Event) -> Result<(), Failure>;
}

/// What a pin has to tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub pin: &'static str,
    pub name: &'static str,
    /// The program that it is about, if it is about one.
    pub program: Option<String>,
    pub payload: Payload,
}

/// What a module may take while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Of time, from the core's call to the module's return.
    pub time: Duration,
    /// Of memory, more than it had when it was called; bytes.
    pub memory: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self { time: Duration::from_secs(2), memory: 64 << 20 }
    }
}

/// What there is to be known of a module before it is loaded.
#[derive(Clone, Copy)]
pub struct Manifest {
    pub name: &'static str,
    pub what: &'static str,
    /// Makes one that knows nothing yet. A reference, so that what it is made from may be learnt at run time.
    pub make: &'static (dyn Fn() -> Box<dyn Module> + Sync),
    pub budget: Budget,
    /// How often it is loaded again after failures; what it knew is lost each time, its programs and their settings are not.
    pub reloads: u32,
}
