//! The calls of RMK's §3.1, as the running module makes them.

use crate::confine::Overrun;
use crate::failure::Failure;
use crate::kernel::Microkernel;
use crate::payload::Payload;
use crate::pin::PinId;

/// The core, as far as one module sees it.
pub struct Calls<'a> {
    pub(crate) kernel: &'a mut Microkernel,
    pub(crate) module: usize,
    pub(crate) failed: Option<Overrun>,
}

impl Calls<'_> {
    /// Asks for a pin, which is loaded if it is not there.
    ///
    /// # Errors
    /// There is no such pin, or it cannot be had here.
    pub fn use_pin(&mut self, name: &str) -> Result<PinId, Failure> {
        self.kernel.use_pin(self.module, name)
    }

    /// Needs a pin no longer, nor its events. The last one's release unloads it.
    pub fn release_pin(&mut self, pin: PinId) {
        self.kernel.release_pin(self.module, pin);
    }

    /// Has a pin perform an operation; what it returned.
    ///
    /// # Errors
    /// The pin is not in use by this module, has no such operation, or refused.
    pub fn issue_cmd(&mut self, pin: PinId, operation: &str, argument: &Payload) -> Result<Payload, Failure> {
        self.kernel.issue_cmd(self.module, pin, operation, argument)
    }

    /// Wants to be told of an event.
    ///
    /// # Errors
    /// The pin is not in use by this module, or raises no such event.
    pub fn subscr_event(&mut self, pin: PinId, event: &str) -> Result<(), Failure> {
        self.kernel.subscribe(self.module, pin, event)
    }

    /// Wants to be told of it no longer.
    ///
    /// # Errors
    /// The pin is not in use by this module, or raises no such event.
    pub fn unsubscr_event(&mut self, pin: PinId, event: &str) -> Result<(), Failure> {
        self.kernel.unsubscribe(self.module, pin, event)
    }

    /// What this module is called.
    pub fn module(&self) -> &'static str {
        self.kernel.name(self.module)
    }

    /// Has something said to whoever reads the log.
    pub fn say(&mut self, what: String) {
        self.kernel.say(self.module, what);
    }

    /// Has this module unloaded when it returns, as one that failed in this way: for those that have others' code run, and have it in hand.
    pub fn fail(&mut self, why: Overrun) {
        self.failed.get_or_insert(why);
    }
}
