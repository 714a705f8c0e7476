//! `oshang`: flags processors that do not switch although threads wait for them, and threads of protected programs that do not get one
//! (RMK, §4, *SHD*). Nothing is ended for it: a program is in the same place after a recovery.

mod processor;
mod slices;
mod threads;

use outlast_core::{Budget, Calls, Event, Failure, Manifest, Module, Payload, PinId};
use outlast_interfaces::oshang::{Settings, NAME};
use outlast_interfaces::schl::{self, Look, Starved};
use processor::{Processor, Seen};
use std::collections::BTreeMap;
use std::time::Duration;
use threads::Threads;

pub const MANIFEST: Manifest = Manifest {
    name: NAME,
    what: "tells of processors that do not switch while threads wait, and of programs that get none",
    make: &|| Box::new(OsHang { pin: None, watch: None }),
    // The histories of all processors.
    budget: Budget { time: Duration::from_secs(2), memory: 16 << 20 },
    reloads: 3,
};

struct OsHang {
    pin: Option<PinId>,
    watch: Option<Watch>,
}

/// The machine.
struct Watch {
    settings: Settings,
    before: Option<Duration>,
    processors: BTreeMap<u32, Processor>,
    threads: Threads,
}

impl Watch {
    fn new(settings: Settings) -> Self {
        Self { settings, before: None, processors: BTreeMap::new(), threads: Threads::default() }
    }

    /// What is starved and was not told of lately, and the processors on which somebody is to wait.
    fn see(&mut self, look: &Look) -> (Vec<Starved>, Vec<u32>) {
        let passed = look.at.saturating_sub(self.before.unwrap_or(look.at));
        self.before = Some(look.at);
        // Whoever looks was kept from it: what happened meanwhile is not known, and counts for no more than a look or two.
        let passed = passed.min(self.settings.every * 2);
        let (mut starved, mut probes) = (Vec::new(), Vec::new());
        for seen in &look.processors {
            let processor = self.processors.entry(seen.number).or_default();
            match processor.see(seen, look.at, passed, &self.settings) {
                Seen::Well => (),
                Seen::Alone => probes.push(seen.number),
                Seen::Starves(what) => starved.push(what),
            }
        }
        self.threads.pass(passed);
        if let Some(threads) = &look.threads {
            starved.extend(self.threads.see(threads, look.at, &self.settings));
        }
        (starved, probes)
    }
}

impl Module for OsHang {
    fn start(&mut self, calls: &mut Calls) -> Result<(), Failure> {
        let pin = calls.use_pin(schl::NAME)?;
        calls.subscr_event(pin, schl::SWITCHED)?;
        self.pin = Some(pin);
        Ok(())
    }

    fn protect(&mut self, calls: &mut Calls, _: &str, settings: &Payload) -> Result<(), Failure> {
        let settings: Settings = settings.read()?;
        let Some(pin) = self.pin else { return Ok(()) };
        calls.issue_cmd(pin, schl::WATCH, &Payload::of(&settings.every)?)?;
        self.watch = Some(Watch::new(settings));
        Ok(())
    }

    fn release(&mut self, _: &mut Calls, _: &str) {
        self.watch = None;
    }

    fn on_event(&mut self, calls: &mut Calls, event: &Event) -> Result<(), Failure> {
        let (Some(pin), Some(watch)) = (self.pin, &mut self.watch) else { return Ok(()) };
        let (starved, probes) = watch.see(&event.payload.read()?);
        for starved in starved {
            calls.issue_cmd(pin, schl::FLAG, &Payload::of(&starved)?)?;
        }
        for number in probes {
            calls.issue_cmd(pin, schl::PROBE, &Payload::of(&number)?)?;
        }
        Ok(())
    }
}

/// The same is not told of again within this time.
const AGAIN: Duration = Duration::from_secs(600);
