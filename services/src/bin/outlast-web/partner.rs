//! A worker's way to its partner in the content process.

use std::sync::Arc;

use outlast_glue_rt::Mapped;

use crate::failure::Failure;
use crate::mailbox::{Operation, Reply, Request};
use crate::stubs::Event;

pub struct Partner {
    pub mailbox: Arc<Mapped>,
    pub events: Event,
    /// Triggered when a request is there.
    pub asked: u64,
    /// Triggered when its reply is.
    pub answered: u64,
    pub last: u64,
}

impl Partner {
    /// Waits for the reply, also if that is an error.
    pub fn ask(&mut self, operation: Operation, page: u64, file: u64, path: &[u8]) -> Result<Reply, Failure> {
        self.last += 1;
        let request = Request { number: self.last, operation, page, file, path: path.to_vec() };
        request.write(&self.mailbox)?;
        self.events.event_trigger(self.asked)?;
        loop {
            self.events.event_wait(self.answered)?;
            let reply = Reply::read(&self.mailbox)?;
            if reply.number == self.last {
                return Ok(reply);
            }
        }
    }
}
