//! `crash`: decides what a death means, and climbs the ladder: go on from the last commit, from an older one, give up. RMK's
//! application crash recovery (Table 1), for all that ends a process.

mod further_back;
mod ladder;
mod tries;

use further_back::FurtherBack;
use outlast_core::{Calls, Event, Failure, Manifest, Module, Payload, PinId};
use outlast_interfaces::crash::{Settings, NAME};
use outlast_interfaces::proc::{self, Death, Decision, Stuck};
use std::collections::BTreeMap;
use tries::Tries;

pub const MANIFEST: Manifest = Manifest {
    name: NAME,
    what: "decides what a death means",
    make: &|| Box::new(Crash { proc: None, programs: BTreeMap::new() }),
    budget: crate::BUDGET,
    // Without it nobody is recovered.
    reloads: 100,
};

struct Crash {
    proc: Option<PinId>,
    programs: BTreeMap<String, (Settings, Tries, FurtherBack)>,
}

impl Module for Crash {
    fn start(&mut self, calls: &mut Calls) -> Result<(), Failure> {
        let proc = calls.use_pin(proc::NAME)?;
        for event in [proc::DIED, proc::STUCK, proc::REFUSED, proc::BORN, proc::RENEWED] {
            calls.subscr_event(proc, event)?;
        }
        self.proc = Some(proc);
        Ok(())
    }

    fn protect(&mut self, _: &mut Calls, program: &str, settings: &Payload) -> Result<(), Failure> {
        let settings = settings.read()?;
        // What was tried stays tried.
        let known = self.programs.entry(program.into()).or_insert((settings, Tries::default(), FurtherBack::default()));
        known.0 = settings;
        Ok(())
    }

    fn release(&mut self, _: &mut Calls, program: &str) {
        self.programs.remove(program);
    }

    fn on_event(&mut self, calls: &mut Calls, event: &Event) -> Result<(), Failure> {
        let program = event.program.as_deref().unwrap_or_default();
        let Some((settings, tries, back)) = self.programs.get_mut(program) else { return Ok(()) };
        let decision = match event.name {
            proc::DIED => {
                let death: Death = event.payload.read()?;
                ladder::decide(&death, settings.retries, tries)
            }
            proc::STUCK => {
                let stuck: Stuck = event.payload.read()?;
                match back.next(&stuck) {
                    Some(step) => Decision::GoBackTo(step),
                    None => Decision::GiveUp(stuck.cause),
                }
            }
            proc::REFUSED => match tries.refused() {
                Some(after) => Decision::AskAgain(after),
                None => return Ok(()),
            },
            proc::BORN => {
                tries.born();
                return Ok(());
            }
            _ => {
                *tries = Tries::default();
                return Ok(());
            }
        };
        let Some(proc) = self.proc else { return Ok(()) };
        let (operation, argument) = command(&decision)?;
        calls.issue_cmd(proc, operation, &argument).map(drop)
    }
}

/// A decision as the pin wants it.
fn command(decision: &Decision) -> Result<(&'static str, Payload), Failure> {
    Ok(match decision {
        Decision::End(end) => (proc::END, Payload::of(end)?),
        Decision::Respawn(respawn) => (proc::RESPAWN, Payload::of(respawn)?),
        Decision::StartAgain(signal) => (proc::START_AGAIN, Payload::of(signal)?),
        Decision::GoBack(cause) => (proc::GO_BACK, Payload::of(cause)?),
        Decision::GoBackTo(step) => (proc::GO_BACK_TO, Payload::of(step)?),
        Decision::GiveUp(cause) => (proc::GIVE_UP, Payload::of(cause)?),
        Decision::AskAgain(after) => (proc::ASK_AGAIN, Payload::of(after)?),
    })
}
