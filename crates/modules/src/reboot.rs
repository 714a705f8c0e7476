//! `reboot`: decides whether a component that died is micro-rebooted, or given up: once it dies again and again and serves nobody.

use outlast_core::{Calls, Event, Failure, Manifest, Module, Payload, PinId};
use outlast_interfaces::comp::{self, Death};
use outlast_interfaces::reboot::{Settings, NAME};
use std::collections::BTreeMap;
use std::time::Duration;

pub const MANIFEST: Manifest = Manifest {
    name: NAME,
    what: "decides whether a component that died is micro-rebooted",
    make: &|| Box::new(Reboot { comp: None, components: BTreeMap::new() }),
    budget: crate::BUDGET,
    // Without it nothing is micro-rebooted.
    reloads: 100,
};

struct Reboot {
    comp: Option<PinId>,
    components: BTreeMap<String, Deaths>,
}

/// Deaths of a component that were seen so far, as far as they count.
struct Deaths {
    settings: Settings,
    fruitless: u32,
}

impl Deaths {
    /// Counts one; true: it was one too many.
    fn count(&mut self, death: &Death) -> bool {
        // One that nobody wanted anything of did not fail, unless it did so at once.
        let wanted = death.wanted || !death.started || death.lived < Duration::from_millis(1);
        let failed = death.completed == 0 && wanted;
        self.fruitless = if failed { self.fruitless + 1 } else { 0 };
        self.fruitless >= self.settings.fruitless
    }
}

impl Module for Reboot {
    fn start(&mut self, calls: &mut Calls) -> Result<(), Failure> {
        let comp = calls.use_pin(comp::NAME)?;
        calls.subscr_event(comp, comp::DIED)?;
        self.comp = Some(comp);
        Ok(())
    }

    fn protect(&mut self, _: &mut Calls, component: &str, settings: &Payload) -> Result<(), Failure> {
        let settings = settings.read()?;
        // What was counted stays counted.
        self.components.entry(component.into()).or_insert(Deaths { settings, fruitless: 0 }).settings = settings;
        Ok(())
    }

    fn release(&mut self, _: &mut Calls, component: &str) {
        self.components.remove(component);
    }

    fn on_event(&mut self, calls: &mut Calls, event: &Event) -> Result<(), Failure> {
        let component = event.program.as_deref().unwrap_or_default();
        let (Some(comp), Some(deaths)) = (self.comp, self.components.get_mut(component)) else { return Ok(()) };
        let (operation, argument) = match deaths.count(&event.payload.read()?) {
            false => (comp::REBOOT, Payload::NONE),
            true => {
                let why = format!("it died {} times in a row without serving a call", deaths.fruitless);
                (comp::GIVE_UP, Payload::of(&why)?)
            }
        };
        calls.issue_cmd(comp, operation, &argument).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_interfaces::reboot::USUAL;

    fn death(completed: u64, wanted: bool) -> Death {
        let lived = Duration::from_secs(1);
        Death {
            process: 7,
            end: None,
            hung: false,
            completed,
            started: true,
            wanted,
            lived,
            descriptors: 0,
            recovered: 0,
        }
    }

    #[test]
    fn only_deaths_in_a_row_that_served_nobody_end_a_component() {
        let mut deaths = Deaths { settings: USUAL, fruitless: 0 };
        for spared in [death(1, true), death(0, false)] {
            for _ in 1..USUAL.fruitless {
                assert!(!deaths.count(&death(0, true)));
            }
            assert!(!deaths.count(&spared));
        }
        for _ in 1..USUAL.fruitless {
            assert!(!deaths.count(&Death { started: false, ..death(0, false) }));
        }
        assert!(deaths.count(&death(0, true)));
    }
}
