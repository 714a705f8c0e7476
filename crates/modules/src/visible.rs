//! `visible`: a commit before whatever others can see (Discount Checking, §2).

use outlast_core::{Calls, Event, Failure, Manifest, Module, Payload, PinId};
use outlast_interfaces::sysc::{self, CommitBefore};
use outlast_interfaces::visible::{Settings, NAME};

pub const MANIFEST: Manifest = Manifest {
    name: NAME,
    what: "a commit before whatever others can see",
    make: &|| Box::new(VisibleRule { sysc: None }),
    budget: crate::BUDGET,
    reloads: 3,
};

struct VisibleRule {
    sysc: Option<PinId>,
}

impl Module for VisibleRule {
    fn start(&mut self, calls: &mut Calls) -> Result<(), Failure> {
        self.sysc = Some(calls.use_pin(sysc::NAME)?);
        Ok(())
    }

    fn protect(&mut self, calls: &mut Calls, program: &str, settings: &Payload) -> Result<(), Failure> {
        let Settings { outputs } = settings.read()?;
        let Some(sysc) = self.sysc else { return Ok(()) };
        let what = CommitBefore { program: program.into(), calls: outputs };
        calls.issue_cmd(sysc, sysc::COMMIT_BEFORE, &Payload::of(&what)?).map(drop)
    }

    fn on_event(&mut self, _: &mut Calls, _: &Event) -> Result<(), Failure> {
        Ok(())
    }
}
