//! `checkpoint`: commits at intervals while a program computes (RMK, §6, *TAC*). There is no consistent point to wait for, as there
//! is in the paper: a commit is one wherever the program stands.

use outlast_core::{Calls, Event, Failure, Manifest, Module, Payload, PinId};
use outlast_interfaces::checkpoint::{Settings, NAME};
use outlast_interfaces::peri::{self, Commit};

pub const MANIFEST: Manifest = Manifest {
    name: NAME,
    what: "commits at intervals while a program computes",
    make: &|| Box::new(Checkpoint { peri: None }),
    budget: crate::BUDGET,
    reloads: 3,
};

struct Checkpoint {
    peri: Option<PinId>,
}

impl Module for Checkpoint {
    fn start(&mut self, calls: &mut Calls) -> Result<(), Failure> {
        self.peri = Some(calls.use_pin(peri::NAME)?);
        Ok(())
    }

    fn protect(&mut self, calls: &mut Calls, program: &str, settings: &Payload) -> Result<(), Failure> {
        let Settings { every, sparing } = settings.read()?;
        let Some(peri) = self.peri else { return Ok(()) };
        let what = Commit { program: program.into(), every, sparing };
        calls.issue_cmd(peri, peri::COMMIT, &Payload::of(&what)?).map(drop)
    }

    fn on_event(&mut self, _: &mut Calls, _: &Event) -> Result<(), Failure> {
        Ok(())
    }
}
