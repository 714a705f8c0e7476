//! The pin `peri`: a program's engine has the timer for commits, so that nobody has to be woken, and a thread of the supervisor keeps states.

use crate::desk::Shared;
use outlast_core::{Event, Failure, Payload, Pin};
use outlast_image::inject::option;
use outlast_interfaces::peri::{self, Commit, Keep, NAME};
use outlast_supervisor::Policy;
use std::time::Duration;

pub struct Peri(pub Shared);

impl Pin for Peri {
    fn operate(&mut self, operation: &'static str, argument: &Payload, _: &mut Vec<Event>) -> Result<Payload, Failure> {
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let mut desk = self.0.borrow_mut();
        if operation == peri::KEEP {
            let Keep { program, every, keep, budget } = argument.read()?;
            let policy = Policy { every_ns: nanoseconds(every), keep_ns: nanoseconds(keep), budget };
            desk.options_of(NAME, &program)?.generations = Some(policy);
            return Ok(Payload::NONE);
        }
        let Commit { program, every, sparing } = argument.read()?;
        let options = desk.options_of(NAME, &program)?;
        options.interval_ns = nanoseconds(every);
        options.set(option::SPARING, sparing);
        Ok(Payload::NONE)
    }
}
