//! Modules that decide about components otherwise than usual.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use outlast_core::{Budget, Calls, Event, Failure, Manifest, Module, Payload, PinId};
use outlast_interfaces::comp;

/// What it does about a death.
type Decides = fn(&mut Calls, PinId, &Event) -> Result<(), Failure>;

struct Policy {
    comp: Option<PinId>,
    decides: Decides,
}

impl Module for Policy {
    fn start(&mut self, calls: &mut Calls) -> Result<(), Failure> {
        let comp = calls.use_pin(comp::NAME)?;
        for event in [comp::DIED, comp::SERVES] {
            calls.subscr_event(comp, event)?;
        }
        self.comp = Some(comp);
        Ok(())
    }

    fn protect(&mut self, _: &mut Calls, _: &str, _: &Payload) -> Result<(), Failure> {
        Ok(())
    }

    fn on_event(&mut self, calls: &mut Calls, event: &Event) -> Result<(), Failure> {
        match (event.name, self.comp) {
            (comp::DIED, Some(comp)) => (self.decides)(calls, comp, event),
            _ => {
                calls.say(format!("{} of {}", event.name, event.program.as_deref().unwrap_or("nobody")));
                Ok(())
            }
        }
    }
}

const BUDGET: Budget = Budget { time: Duration::from_secs(60), memory: 1 << 20 };

const fn manifest(name: &'static str, make: &'static (dyn Fn() -> Box<dyn Module> + Sync)) -> Manifest {
    Manifest { name, what: "for a test", make, budget: BUDGET, reloads: 0 }
}

fn policy(decides: Decides) -> Box<dyn Module> {
    Box::new(Policy { comp: None, decides })
}

/// The first death is one too many.
pub const STRICT: Manifest = manifest("strict", &|| {
    policy(|calls, comp, _| {
        let why = Payload::of(&"a single death".to_string())?;
        calls.issue_cmd(comp, comp::GIVE_UP, &why).map(drop)
    })
});

/// So it is of this component, for all.
pub const KEYSTONE: Manifest = manifest("keystone", &|| {
    policy(|calls, comp, event| match event.program.as_deref() {
        Some("keystone") => {
            let why = Payload::of(&"nothing goes without it".to_string())?;
            calls.issue_cmd(comp, comp::END, &why).map(drop)
        }
        _ => calls.issue_cmd(comp, comp::REBOOT, &Payload::NONE).map(drop),
    })
});

/// It fails.
pub const PANICS: Manifest = manifest("panics", &|| policy(|_, _, _| panic!("as it is meant to")));

/// Set when it may come to an end.
pub static MAY_END: AtomicBool = AtomicBool::new(false);

/// It does not come to an end.
pub const LOOPS: Manifest = manifest("loops", &|| {
    policy(|_, _, _| {
        while !MAY_END.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    })
});
