//! `oshang`: of this machine and of other nodes, flags processors that do not switch although threads wait for them, and threads of protected programs that do not get one
//! (RMK, §4, *SHD*). Nothing is ended for it: a program is in the same place after a recovery.

mod machine;
mod processor;
mod slices;
mod threads;

use machine::Machine;
use outlast_core::{Budget, Calls, Event, Failure, Manifest, Module, Payload, PinId};
use outlast_interfaces::node::{self, Returned};
use outlast_interfaces::oshang::{Settings, MACHINE, NAME};
use outlast_interfaces::schl::{self, Flagged};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

pub const MANIFEST: Manifest = Manifest {
    name: NAME,
    what: "tells of processors that do not switch while threads wait, and of programs that get none",
    make: &|| Box::new(OsHang { pin: None, watches: BTreeMap::new(), told: BTreeSet::new() }),
    // The histories of all processors.
    budget: Budget { time: Duration::from_secs(2), memory: 16 << 20 },
    reloads: 3,
};

struct OsHang {
    /// This machine's pin, on which is laid what is to be told.
    pin: Option<PinId>,
    /// By the names of their pins.
    watches: BTreeMap<String, Watch>,
    /// Nodes that do not let themselves be looked at more often.
    told: BTreeSet<String>,
}

/// A machine that is watched.
struct Watch {
    /// Its pin `schl`.
    pin: PinId,
    settings: Settings,
    /// Whether threads of ours may run there.
    probes: bool,
    machine: Machine,
}

impl Watch {
    fn new(pin: PinId, settings: Settings) -> Self {
        Self { pin, settings, probes: true, machine: Machine::default() }
    }
}

/// The pin by which this is seen: the machine, or another node.
fn pin_of(program: &str) -> String {
    match program {
        MACHINE => schl::NAME.into(),
        node => node::pin_of(node, schl::NAME),
    }
}

impl OsHang {
    /// A node is spoken to, perhaps as one that has begun anew since: what is known of it does not count.
    fn returned(&mut self, calls: &mut Calls, node: &str) -> Result<(), Failure> {
        let Some(watch) = self.watches.get_mut(&pin_of(node)) else { return Ok(()) };
        *watch = Watch::new(watch.pin, watch.settings);
        let every = Payload::of(&watch.settings.every)?;
        if let Err(failure) = calls.issue_cmd(watch.pin, schl::WATCH, &every) {
            // As it is each time.
            if self.told.insert(node.into()) {
                calls.say(format!("{node} is looked at as often as it looks at itself: {failure}"));
            }
        }
        Ok(())
    }
}

impl Module for OsHang {
    fn start(&mut self, calls: &mut Calls) -> Result<(), Failure> {
        let pin = calls.use_pin(schl::NAME)?;
        calls.subscr_event(pin, schl::SWITCHED)?;
        self.pin = Some(pin);
        Ok(())
    }

    fn protect(&mut self, calls: &mut Calls, program: &str, settings: &Payload) -> Result<(), Failure> {
        let settings: Settings = settings.read()?;
        let name = pin_of(program);
        let pin = calls.use_pin(&name)?;
        if program == MACHINE {
            calls.issue_cmd(pin, schl::WATCH, &Payload::of(&settings.every)?)?;
        } else {
            let node = calls.use_pin(node::NAME)?;
            calls.subscr_event(node, node::RETURNED)?;
            calls.subscr_event(pin, schl::SWITCHED)?;
        }
        self.watches.insert(name, Watch::new(pin, settings));
        Ok(())
    }

    fn release(&mut self, calls: &mut Calls, program: &str) {
        if let Some(watch) = self.watches.remove(&pin_of(program)).filter(|_| program != MACHINE) {
            calls.release_pin(watch.pin);
        }
    }

    fn on_event(&mut self, calls: &mut Calls, event: &Event) -> Result<(), Failure> {
        if event.pin == node::NAME {
            let Returned { node, .. } = event.payload.read()?;
            return self.returned(calls, &node);
        }
        let (Some(pin), Some(watch)) = (self.pin, self.watches.get_mut(event.pin)) else { return Ok(()) };
        let (starved, probes) = watch.machine.see(&event.payload.read()?, &watch.settings);
        let node = event.pin.strip_suffix(schl::NAME).and_then(|node| node.strip_suffix('/')).map(String::from);
        for what in starved {
            calls.issue_cmd(pin, schl::FLAG, &Payload::of(&Flagged { node: node.clone(), what })?)?;
        }
        for number in probes.into_iter().filter(|_| watch.probes) {
            let probed = calls.issue_cmd(watch.pin, schl::PROBE, &Payload::of(&number)?);
            if let Err(failure) = probed {
                // Where it may not be done it is not asked for again and again.
                watch.probes = node.is_none();
                return Err(failure);
            }
        }
        Ok(())
    }
}

/// The same is not told of again within this time.
const AGAIN: Duration = Duration::from_secs(600);
