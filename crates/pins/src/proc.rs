//! The pin `proc`.

use crate::desk::Shared;
use outlast_core::{Event, Failure, Payload, Pin};
use outlast_interfaces::proc::{self, Decision};

pub struct Proc(pub Shared);

impl Pin for Proc {
    fn operate(&mut self, operation: &'static str, argument: &Payload, _: &mut Vec<Event>) -> Result<Payload, Failure> {
        if operation == proc::FLAG {
            return self.0.borrow_mut().flag(proc::NAME, argument.read()?).map(|()| Payload::NONE);
        }
        if operation == proc::STARVES {
            return self.0.borrow_mut().starves(proc::NAME, argument.read()?).map(|()| Payload::NONE);
        }
        if operation == proc::ALERT {
            return self.0.borrow_mut().alert(proc::NAME, argument.read()?).map(|()| Payload::NONE);
        }
        if operation == proc::WARN {
            return self.0.borrow_mut().warn(proc::NAME, argument.read()?).map(|()| Payload::NONE);
        }
        let decision = match operation {
            proc::END => Decision::End(argument.read()?),
            proc::RESPAWN => Decision::Respawn(argument.read()?),
            proc::START_AGAIN => Decision::StartAgain(argument.read()?),
            proc::GO_BACK => Decision::GoBack(argument.read()?),
            proc::GO_BACK_TO => Decision::GoBackTo(argument.read()?),
            proc::GIVE_UP => Decision::GiveUp(argument.read()?),
            _ => Decision::AskAgain(argument.read()?),
        };
        self.0.borrow_mut().decide(proc::NAME, decision)?;
        Ok(Payload::NONE)
    }
}
