//! `generations`: older states of a program are kept, for a person to go back to, and for the module `crash` where the last one does not help.

use outlast_core::{Calls, Event, Failure, Manifest, Module, Payload, PinId};
use outlast_interfaces::generations::{Settings, NAME};
use outlast_interfaces::peri::{self, Keep};

pub const MANIFEST: Manifest = Manifest {
    name: NAME,
    what: "keeps older states of a program",
    make: &|| Box::new(Generations { peri: None }),
    budget: crate::BUDGET,
    reloads: 3,
};

struct Generations {
    peri: Option<PinId>,
}

impl Module for Generations {
    fn start(&mut self, calls: &mut Calls) -> Result<(), Failure> {
        self.peri = Some(calls.use_pin(peri::NAME)?);
        Ok(())
    }

    fn protect(&mut self, calls: &mut Calls, program: &str, settings: &Payload) -> Result<(), Failure> {
        let Settings { every, keep, budget } = settings.read()?;
        let Some(peri) = self.peri else { return Ok(()) };
        let what = Keep { program: program.into(), every, keep, budget };
        calls.issue_cmd(peri, peri::KEEP, &Payload::of(&what)?).map(drop)
    }

    fn on_event(&mut self, _: &mut Calls, _: &Event) -> Result<(), Failure> {
        Ok(())
    }
}
