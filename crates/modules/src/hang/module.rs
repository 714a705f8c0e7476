//! The module around it, where it is compiled in.

use super::named::Named;
use super::threads::Threads;
use outlast_core::{Budget, Calls, Event, Failure, Manifest, Module, Payload, PinId};
use outlast_interfaces::hang::{Settings, NAME};
use outlast_interfaces::pmc::{self, Watch};
use outlast_interfaces::{proc, sect};
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
    pins: Option<Pins>,
    programs: BTreeMap<String, Program>,
}

#[derive(Clone, Copy)]
struct Pins {
    pmc: PinId,
    sect: PinId,
    proc: PinId,
}

/// A program's threads, between its calls and in the sections that have names.
struct Program {
    threads: Threads,
    named: Named,
}

impl Module for Hang {
    fn start(&mut self, calls: &mut Calls) -> Result<(), Failure> {
        let [pmc, sect, proc] = [calls.use_pin(pmc::NAME)?, calls.use_pin(sect::NAME)?, calls.use_pin(proc::NAME)?];
        calls.subscr_event(pmc, pmc::COUNTED)?;
        calls.subscr_event(sect, sect::SEEN)?;
        calls.subscr_event(proc, proc::DIED)?;
        calls.subscr_event(proc, proc::RENEWED)?;
        calls.subscr_event(proc, proc::RECOVERED)?;
        self.pins = Some(Pins { pmc, sect, proc });
        Ok(())
    }

    fn protect(&mut self, calls: &mut Calls, program: &str, settings: &Payload) -> Result<(), Failure> {
        let settings: Settings = settings.read()?;
        let Some(Pins { pmc, sect, .. }) = self.pins else { return Ok(()) };
        let watch = Payload::of(&Watch { program: program.into(), by: NAME.into(), every: settings.every })?;
        calls.issue_cmd(pmc, pmc::WATCH, &watch)?;
        calls.issue_cmd(sect, sect::WATCH, &watch)?;
        // What was learnt stays learnt.
        let fresh = || Program { threads: Threads::new(settings), named: Named::new(settings.threshold) };
        let program = self.programs.entry(program.into()).or_insert_with(fresh);
        program.threads.set(settings);
        program.named.set(settings.threshold);
        Ok(())
    }

    fn release(&mut self, _: &mut Calls, program: &str) {
        self.programs.remove(program);
    }

    fn on_event(&mut self, calls: &mut Calls, event: &Event) -> Result<(), Failure> {
        let program = event.program.as_deref().unwrap_or_default();
        let (Some(Pins { proc, .. }), Some(program)) = (self.pins, self.programs.get_mut(program)) else {
            return Ok(());
        };
        let Program { threads, named } = program;
        match event.name {
            proc::DIED => {
                threads.have_ended();
                named.have_ended();
            }
            // What the program counts went back with it.
            proc::RECOVERED => named.have_ended(),
            proc::RENEWED => {
                threads.are_others();
                named.are_others();
            }
            sect::SEEN => {
                if let Some(hang) = named.see(&event.payload.read::<Vec<sect::Thread>>()?) {
                    calls.issue_cmd(proc, proc::FLAG, &Payload::of(&hang)?)?;
                }
            }
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
