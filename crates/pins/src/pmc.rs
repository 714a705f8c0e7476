//! The pin `pmc`: the supervisor looks at the program's threads, and tells what it sees.

use crate::desk::Shared;
use outlast_core::{Event, Failure, Payload, Pin};
use outlast_interfaces::pmc::{Watch, NAME};

pub struct Pmc(pub Shared);

impl Pin for Pmc {
    fn operate(&mut self, _: &'static str, argument: &Payload, _: &mut Vec<Event>) -> Result<Payload, Failure> {
        let Watch { program, every } = argument.read()?;
        let mut desk = self.0.borrow_mut();
        if program != desk.program {
            return Err(Failure::Refused(NAME.into(), format!("there is no program {program} here")));
        }
        // Of several modules the one that wants it more often.
        desk.looks_every = Some(desk.looks_every.map_or(every, |other| other.min(every)));
        Ok(Payload::NONE)
    }
}
