//! Where modules' wishes lie until the supervisor sees to them: pins take them while a module runs, and nothing is done meanwhile.

use outlast_core::Failure;
use outlast_interfaces::proc::Decision;
use outlast_supervisor::options::Options;
use std::cell::RefCell;
use std::rc::Rc;

/// Of one program.
pub struct Desk {
    /// Its name.
    pub program: String,
    /// How the engine is to protect it; none once it has begun, for the engine does not change its ways.
    pub options: Option<Options>,
    /// Whether something is to be decided.
    is_asked: bool,
    decision: Option<Decision>,
}

pub type Shared = Rc<RefCell<Desk>>;

impl Desk {
    /// For a program that is about to begin.
    pub fn new(program: &str, options: Options) -> Self {
        Self { program: program.into(), options: Some(options), is_asked: false, decision: None }
    }

    /// The way in which `program` is to be protected, to be changed by the pin `pin`.
    pub fn options_of(&mut self, pin: &str, program: &str) -> Result<&mut Options, Failure> {
        if program != self.program {
            return Err(Failure::Refused(pin.into(), format!("there is no program {program} here")));
        }
        let begun =
            || Failure::Refused(pin.into(), format!("{program} has begun, and its engine does not change its ways"));
        self.options.as_mut().ok_or_else(begun)
    }

    /// From here on something is to be decided.
    pub fn ask(&mut self) {
        (self.is_asked, self.decision) = (true, None);
    }

    /// What was decided.
    pub fn answer(&mut self) -> Option<Decision> {
        self.is_asked = false;
        self.decision.take()
    }

    /// Takes a decision, if one is asked for and there is none.
    pub fn decide(&mut self, pin: &str, decision: Decision) -> Result<(), Failure> {
        match (self.is_asked, &self.decision) {
            (false, _) => Err(Failure::Refused(pin.into(), "nothing is to be decided".into())),
            (true, Some(_)) => Err(Failure::Refused(pin.into(), "it is decided already".into())),
            (true, None) => {
                self.decision = Some(decision);
                Ok(())
            }
        }
    }
}
