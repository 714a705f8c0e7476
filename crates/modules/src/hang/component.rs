//! The module `hang` where what is watched is a component.

use super::calls::Calls as Seen;
use outlast_core::{Calls, Event, Failure, Manifest, Module, Payload, PinId};
use outlast_interfaces::comp;
use outlast_interfaces::hang::{OfComponent, NAME};
use std::collections::BTreeMap;

pub const OF_COMPONENTS: Manifest = Manifest {
    name: NAME,
    what: "flags components whose calls do not end",
    make: &|| Box::new(Hang { comp: None, components: BTreeMap::new() }),
    budget: crate::BUDGET,
    // Without it clients of a component that hangs wait for ever.
    reloads: 100,
};

struct Hang {
    comp: Option<PinId>,
    components: BTreeMap<String, Seen>,
}

impl Module for Hang {
    fn start(&mut self, calls: &mut Calls) -> Result<(), Failure> {
        let comp = calls.use_pin(comp::NAME)?;
        calls.subscr_event(comp, comp::LOOKED)?;
        calls.subscr_event(comp, comp::DIED)?;
        self.comp = Some(comp);
        Ok(())
    }

    fn protect(&mut self, calls: &mut Calls, component: &str, settings: &Payload) -> Result<(), Failure> {
        let settings: OfComponent = settings.read()?;
        if let Some(comp) = self.comp {
            calls.issue_cmd(comp, comp::WATCH, &Payload::of(&settings.every())?)?;
        }
        self.components.entry(component.into()).or_insert_with(|| Seen::new(settings)).set(settings);
        Ok(())
    }

    fn release(&mut self, _: &mut Calls, component: &str) {
        self.components.remove(component);
    }

    fn on_event(&mut self, calls: &mut Calls, event: &Event) -> Result<(), Failure> {
        let component = event.program.as_deref().unwrap_or_default();
        let (Some(comp), Some(seen)) = (self.comp, self.components.get_mut(component)) else { return Ok(()) };
        if event.name == comp::DIED {
            seen.have_ended();
            return Ok(());
        }
        match seen.see(&event.payload.read()?) {
            Some(hang) => calls.issue_cmd(comp, comp::FLAG, &Payload::of(&hang)?).map(drop),
            None => Ok(()),
        }
    }
}
