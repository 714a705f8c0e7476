//! A node as whoever uses its pins sees it.

use crate::channel::{Command, Hub};
use outlast_core::Payload;
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError};
use std::time::Duration;

/// A node that can be asked. Calls wait for its answer, so they belong to threads that nothing else waits for.
#[derive(Clone)]
pub struct Remote {
    name: String,
    number: usize,
    hub: Hub,
    limit: Duration,
}

impl Remote {
    pub(crate) fn new(name: String, number: usize, hub: Hub, limit: Duration) -> Self {
        Self { name, number, hub, limit }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// For so long an answer is waited for.
    pub fn patience(&self) -> Duration {
        self.limit
    }

    /// Uses a pin from now on, also after the node has been away. That it refuses is news, whenever it does: it may
    /// be asked for this before it is there, and think otherwise later.
    pub fn use_pin(&self, pin: &str) {
        self.hub.say(Command::Use { node: self.number, pin: pin.into(), is_wanted: true });
    }

    pub fn release_pin(&self, pin: &str) {
        self.hub.say(Command::Use { node: self.number, pin: pin.into(), is_wanted: false });
    }

    /// Wants to be told of an event, or no longer.
    pub fn want_event(&self, pin: &str, event: &str, is_wanted: bool) {
        let (node, pin, event) = (self.number, pin.into(), event.into());
        self.hub.say(Command::Want { node, pin, event, is_wanted });
    }

    /// Has an operation performed there.
    ///
    /// # Errors
    /// In words: it is not there, refuses, or has not answered in time.
    pub fn issue_cmd(&self, pin: &str, operation: &str, argument: &Payload) -> Result<Payload, String> {
        let (reply, answer) = channel();
        let (pin, operation, argument) = (pin.into(), operation.into(), argument.clone());
        self.hub.say(Command::Issue { node: self.number, pin, operation, argument, reply });
        self.wait(&answer)
    }

    fn wait(&self, answer: &Receiver<Result<Payload, String>>) -> Result<Payload, String> {
        let name = &self.name;
        match answer.recv_timeout(self.limit) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Timeout) => {
                Err(format!("the node {name} has not answered within {:?}, and may still do it", self.limit))
            }
            Err(RecvTimeoutError::Disconnected) => Err(format!("the node {name} cannot be used from here")),
        }
    }
}
