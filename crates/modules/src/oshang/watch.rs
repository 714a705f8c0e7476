//! One machine that is watched, this one or another node.

use super::processor::{Processor, Seen};
use super::threads::Threads;
use outlast_core::PinId;
use outlast_interfaces::oshang::Settings;
use outlast_interfaces::schl::{Look, Starved};
use std::collections::BTreeMap;
use std::time::Duration;

pub struct Watch {
    /// Its pin `schl`.
    pub pin: PinId,
    pub settings: Settings,
    /// Whether threads of ours may run there.
    pub probes: bool,
    before: Option<Duration>,
    processors: BTreeMap<u32, Processor>,
    threads: Threads,
}

impl Watch {
    pub fn new(pin: PinId, settings: Settings) -> Self {
        Self { pin, settings, probes: true, before: None, processors: BTreeMap::new(), threads: Threads::default() }
    }

    /// What is starved and was not told of lately, and the processors on which somebody is to wait.
    pub fn see(&mut self, look: &Look) -> (Vec<Starved>, Vec<u32>) {
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
