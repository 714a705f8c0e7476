//! The module around it, where it is compiled in.

use super::threads::Threads;
use outlast_core::{Budget, Calls, Event, Failure, Manifest, Module, Payload, PinId};
use outlast_interfaces::hang::{Settings, NAME};
use outlast_interfaces::pmc::{self, Watch};
use outlast_interfaces::proc;
use std::collections::BTreeMap;
use std::time::Duration;

pub const MANIFEST: Manifest = Manifest {
    name: NAME,
    what: "flags threads that do not leave a code section within what it has taken before",
    make: &|| Box::new(Hang { pins: None, programs: BTreeMap::new() }),
    // Histories of sections that were not met before.
    budget: Budget { time: Duration::from_secs(2), memory: 4 << 20 },
    reloads: 3,
};

struct Hang {
    /// `pmc` and `proc`.
    pins: Option<(PinId, PinId)>,
    programs: BTreeMap<String, Threads>,
}

impl Module for Hang {
    fn start(&mut self, calls: &mut Calls) -> Result<(), Failure> {
        let (pmc, proc) = (calls.use_pin(pmc::NAME)?, calls.use_pin(proc::NAME)?);
        calls.subscr_event(pmc, pmc::COUNTED)?;
        calls.subscr_event(proc, proc::DIED)?;
        calls.subscr_event(proc, proc::RENEWED)?;
        self.pins = Some((pmc, proc));
        Ok(())
    }

    fn protect(&mut self, calls: &mut Calls, program: &str, settings: &Payload) -> Result<(), Failure> {
        let settings: Settings = settings.read()?;
        let Some((pmc, _)) = self.pins else { return Ok(()) };
        let watch = Watch { program: program.into(), by: NAME.into(), every: settings.every };
        calls.issue_cmd(pmc, pmc::WATCH, &Payload::of(&watch)?)?;
        // What was learnt stays learnt.
        self.programs.entry(program.into()).or_insert_with(|| Threads::new(settings)).set(settings);
        Ok(())
    }

    fn release(&mut self, _: &mut Calls, program: &str) {
        self.programs.remove(program);
    }

    fn on_event(&mut self, calls: &mut Calls, event: &Event) -> Result<(), Failure> {
        let program = event.program.as_deref().unwrap_or_default();
        let (Some((_, proc)), Some(threads)) = (self.pins, self.programs.get_mut(program)) else { return Ok(()) };
        match event.name {
            proc::DIED => threads.have_ended(),
            proc::RENEWED => threads.are_others(),
            _ => {
                let counts: Vec<pmc::Count> = event.payload.read()?;
                if let Some(hang) = threads.see(&counts) {
                    calls.issue_cmd(proc, proc::FLAG, &Payload::of(&hang)?)?;
                }
                if let Some(starvation) = threads.starved(&counts) {
                    calls.issue_cmd(proc, proc::STARVES, &Payload::of(&starvation)?)?;
                }
            }
        }
        Ok(())
    }
}
