//! Where modules' wishes lie until the supervisor sees to them: pins take them while a module runs, and nothing is done meanwhile.

use crate::dbr::Breakpoints;
use crate::looks::Looks;
use outlast_core::Failure;
use outlast_interfaces::dbr;
use outlast_interfaces::proc::{Decision, Hang, Leak, Starvation, Storm};
use outlast_interfaces::watch::Watch;
use outlast_supervisor::decision::Process;
use outlast_supervisor::options::Options;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

/// Of one program.
pub struct Desk {
    /// Its name.
    pub program: String,
    /// How the engine is to protect it; none while nothing is to be changed about that.
    pub options: Option<Options>,
    /// How often the program's threads are looked at, for each module that wants to know.
    pub looks: BTreeMap<String, Duration>,
    /// When it is looked at for other pins.
    pub sights: Looks,
    /// Addresses that are watched in it.
    pub breakpoints: Breakpoints,
    /// What the program is now; none: it is dead, or not protected.
    pub process: Option<Process>,
    /// Whether leaks may be told of, and those that were.
    is_watching: bool,
    leaks: Vec<Leak>,
    /// Whether something is to be decided.
    is_asked: bool,
    decision: Option<Decision>,
    /// Whether hangs may be told of.
    is_looking: bool,
    hang: Option<Hang>,
    starvation: Option<Starvation>,
    /// Whether a storm may be told of.
    is_counting: bool,
    storm: Option<Storm>,
}

pub type Shared = Rc<RefCell<Desk>>;

impl Desk {
    /// For a program that is about to begin.
    pub fn new(program: &str, options: Options) -> Self {
        Self {
            program: program.into(),
            options: Some(options),
            looks: BTreeMap::new(),
            sights: Looks::default(),
            breakpoints: Breakpoints::default(),
            process: None,
            is_watching: false,
            leaks: Vec::new(),
            is_asked: false,
            decision: None,
            is_looking: false,
            hang: None,
            starvation: None,
            is_counting: false,
            storm: None,
        }
    }

    /// The way in which `program` is to be protected, to be changed by the pin `pin`.
    pub fn options_of(&mut self, pin: &str, program: &str) -> Result<&mut Options, Failure> {
        self.is_of(pin, program)?;
        let not_now = || {
            Failure::Refused(pin.into(), format!("how {program} is protected changes with a module's settings only"))
        };
        self.options.as_mut().ok_or_else(not_now)
    }

    /// Whether this is the desk of `program`, for the pin `pin`.
    pub fn is_of(&self, pin: &str, program: &str) -> Result<(), Failure> {
        if program != self.program {
            return Err(Failure::Refused(pin.into(), format!("there is no program {program} here")));
        }
        Ok(())
    }

    /// The process that `program` is now, for the pin `pin`.
    pub fn process_of(&self, pin: &str, program: &str) -> Result<Process, Failure> {
        self.is_of(pin, program)?;
        self.process.ok_or_else(|| Failure::Refused(pin.into(), format!("{program} has no process just now")))
    }

    /// Has `pin` look at the program at intervals.
    pub fn watch(&mut self, pin: &'static str, Watch { program, by, every }: &Watch) -> Result<(), Failure> {
        self.is_of(pin, program)?;
        self.sights.want(pin, by, *every);
        Ok(())
    }

    /// The program is this process now, or none: the pins whose turn it is to look at it.
    pub fn turns(&mut self, process: Option<Process>) -> Vec<&'static str> {
        self.process = process;
        let mut due = self.sights.due();
        // Every moment counts in which a new process is not followed.
        if process.is_some_and(|process| self.breakpoints.lags(&process)) && !due.contains(&dbr::NAME) {
            due.push(dbr::NAME);
        }
        due
    }

    /// From here on leaks may be told of.
    pub fn begin_watching(&mut self) {
        (self.is_watching, self.leaks) = (true, Vec::new());
    }

    /// Those that were.
    pub fn end_watching(&mut self) -> Vec<Leak> {
        self.is_watching = false;
        std::mem::take(&mut self.leaks)
    }

    /// Takes note of one: of each resource the first.
    pub fn warn(&mut self, pin: &str, leak: Leak) -> Result<(), Failure> {
        if !self.is_watching {
            return Err(Failure::Refused(pin.into(), "nobody looks at the program".into()));
        }
        if self.leaks.iter().all(|other| other.of != leak.of) {
            self.leaks.push(leak);
        }
        Ok(())
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

    /// From here on a thread may be flagged.
    pub fn look(&mut self) {
        (self.is_looking, self.hang, self.starvation) = (true, None, None);
    }

    /// The one that was.
    pub fn flagged(&mut self) -> Option<Hang> {
        self.is_looking = false;
        self.hang.take()
    }

    /// Takes note of a thread that does not get on; of several the first counts.
    pub fn starves(&mut self, pin: &str, starvation: Starvation) -> Result<(), Failure> {
        if !self.is_looking {
            return Err(Failure::Refused(pin.into(), "nobody looks at threads".into()));
        }
        self.starvation.get_or_insert(starvation);
        Ok(())
    }

    /// The one that was told of since threads were looked at.
    pub fn starved(&mut self) -> Option<Starvation> {
        self.starvation.take()
    }

    /// Takes note of a thread that hangs; of several the first counts.
    pub fn flag(&mut self, pin: &str, hang: Hang) -> Result<(), Failure> {
        if !self.is_looking {
            return Err(Failure::Refused(pin.into(), "nobody looks at threads".into()));
        }
        self.hang.get_or_insert(hang);
        Ok(())
    }

    /// From here on a storm may be told of.
    pub fn count(&mut self) {
        (self.is_counting, self.storm) = (true, None);
    }

    /// The one that was.
    pub fn storm(&mut self) -> Option<Storm> {
        self.is_counting = false;
        self.storm.take()
    }

    /// Takes note of one; of several the first counts.
    pub fn alert(&mut self, pin: &str, storm: Storm) -> Result<(), Failure> {
        if !self.is_counting {
            return Err(Failure::Refused(pin.into(), "nothing was recovered".into()));
        }
        self.storm.get_or_insert(storm);
        Ok(())
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
