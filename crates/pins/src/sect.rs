//! The pin `sect`: the supervisor reads what threads have written down of their sections when it looks at them for `pmc`.

use crate::desk::Shared;
use outlast_core::{Event, Failure, Payload, Pin};
use outlast_interfaces::sect::{Watch, NAME};

pub struct Sect(pub Shared);

impl Pin for Sect {
    fn operate(&mut self, _: &'static str, argument: &Payload, _: &mut Vec<Event>) -> Result<Payload, Failure> {
        let Watch { program, by, every } = argument.read()?;
        let mut desk = self.0.borrow_mut();
        desk.is_of(NAME, &program)?;
        let looks = desk.looks.entry(by).or_insert(every);
        *looks = every.min(*looks);
        Ok(Payload::NONE)
    }
}
