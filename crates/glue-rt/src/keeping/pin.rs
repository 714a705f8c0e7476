//! The pin `comp`, over a desk where what modules decided lies until it is taken.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use outlast_core::{Event, Failure, Payload, Pin};
use outlast_interfaces::comp::{self, Decision, Hang};

#[derive(Default)]
pub struct Desk {
    /// Whether something is to be decided.
    is_asked: bool,
    decision: Option<Decision>,
    /// What was flagged.
    pub hang: Option<Hang>,
    /// How often calls are to be looked at.
    pub every: Option<Duration>,
}

impl Desk {
    /// From here on something is.
    pub fn ask(&mut self) {
        (self.is_asked, self.decision) = (true, None);
    }

    /// What was decided.
    pub fn answer(&mut self) -> Option<Decision> {
        self.is_asked = false;
        self.decision.take()
    }
}

pub struct Comp(pub Rc<RefCell<Desk>>);

impl Pin for Comp {
    fn operate(&mut self, operation: &'static str, argument: &Payload, _: &mut Vec<Event>) -> Result<Payload, Failure> {
        let decision = match operation {
            comp::WATCH => {
                self.0.borrow_mut().every = Some(argument.read()?);
                return Ok(Payload::NONE);
            }
            comp::FLAG => {
                self.0.borrow_mut().hang = Some(argument.read()?);
                return Ok(Payload::NONE);
            }
            comp::REBOOT => Decision::Reboot,
            comp::GIVE_UP => Decision::GiveUp(argument.read()?),
            _ => Decision::End(argument.read()?),
        };
        let mut desk = self.0.borrow_mut();
        let refused = |why: &str| Err(Failure::Refused(comp::NAME.into(), why.into()));
        match (desk.is_asked, &desk.decision) {
            (false, _) => refused("nothing is to be decided"),
            (true, Some(_)) => refused("it is decided already"),
            (true, None) => {
                desk.decision = Some(decision);
                Ok(Payload::NONE)
            }
        }
    }
}
