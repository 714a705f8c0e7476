//! The pin `sysc`: what stands before a system call is the engine's to do, which is told before the program begins.

use crate::desk::Shared;
use outlast_core::{Event, Failure, Payload, Pin};
use outlast_image::inject::option;
use outlast_interfaces::sysc::{CommitBefore, LogReplies, Visible, LOG_REPLIES, NAME};

pub struct Sysc(pub Shared);

impl Pin for Sysc {
    fn operate(&mut self, operation: &'static str, argument: &Payload, _: &mut Vec<Event>) -> Result<Payload, Failure> {
        let mut desk = self.0.borrow_mut();
        if operation == LOG_REPLIES {
            let LogReplies { program } = argument.read()?;
            desk.options_of(NAME, &program)?.set(option::REPLIES, true);
            return Ok(Payload::NONE);
        }
        let CommitBefore { program, calls } = argument.read()?;
        let options = desk.options_of(NAME, &program)?;
        options.set(option::NO_VISIBLE, false);
        options.set(option::EACH_OUTPUT, calls == Visible::Each);
        Ok(Payload::NONE)
    }
}
