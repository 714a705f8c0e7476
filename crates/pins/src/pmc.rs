//! The pin `pmc`: the supervisor looks at the program's threads, and tells what it sees.

use crate::desk::Shared;
use outlast_core::{Event, Failure, Payload, Pin};
use outlast_interfaces::pmc::{Watch, NAME};

pub struct Pmc(pub Shared);

impl Pin for Pmc {
    fn operate(&mut self, _: &'static str, argument: &Payload, _: &mut Vec<Event>) -> Result<Payload, Failure> {
        let Watch { program, by, every } = argument.read()?;
        let mut desk = self.0.borrow_mut();
        if program != desk.program {
            return Err(Failure::Refused(NAME.into(), format!("there is no program {program} here")));
        }
        desk.looks.insert(by, every);
        Ok(Payload::NONE)
    }
}
