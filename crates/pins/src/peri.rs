//! The pin `peri`: a program's engine has the timer, so that nobody has to be woken for a commit.

use crate::desk::Shared;
use outlast_core::{Event, Failure, Payload, Pin};
use outlast_image::inject::option;
use outlast_interfaces::peri::{Commit, NAME};

pub struct Peri(pub Shared);

impl Pin for Peri {
    fn operate(&mut self, _: &'static str, argument: &Payload, _: &mut Vec<Event>) -> Result<Payload, Failure> {
        let Commit { program, every, sparing } = argument.read()?;
        let mut desk = self.0.borrow_mut();
        let options = desk.options_of(NAME, &program)?;
        options.interval_ns = u64::try_from(every.as_nanos()).unwrap_or(u64::MAX);
        options.set(option::SPARING, sparing);
        Ok(Payload::NONE)
    }
}
