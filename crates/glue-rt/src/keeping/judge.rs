//! The microkernel of components: the runtime tells, modules decide.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use outlast_core::{Event, Failure, Manifest, Microkernel, Notice, Payload};
use outlast_interfaces::comp::{self, Death, Decision, Hang, Look};

use super::pin::{Comp, Desk};

/// It belongs to the thread that makes it.
pub struct Judge {
    kernel: Microkernel,
    desk: Rc<RefCell<Desk>>,
    settings: Vec<(&'static str, Payload)>,
    notices: Vec<Notice>,
}

/// How often modules that fail on a question are asked.
const ASKED: u32 = 4;

impl Judge {
    /// Loads modules, with their settings.
    ///
    /// # Errors
    /// One cannot be loaded.
    pub fn new(modules: &[(Manifest, Payload)]) -> Result<Self, Failure> {
        let desk = Rc::new(RefCell::new(Desk::default()));
        let mut kernel = Microkernel::new();
        let of_pin = desk.clone();
        kernel.install_pin(&comp::INTERFACE, Box::new(move || Ok(Box::new(Comp(of_pin.clone())))));
        for (manifest, _) in modules {
            kernel.load(*manifest)?;
        }
        let settings = modules.iter().map(|(manifest, settings)| (manifest.name, settings.clone())).collect();
        Ok(Self { kernel, desk, settings, notices: Vec::new() })
    }

    /// From now on modules decide about this component as well.
    ///
    /// # Errors
    /// One of them refuses its settings.
    pub fn protect(&mut self, component: &str) -> Result<(), Failure> {
        self.settings.iter().try_for_each(|(module, settings)| self.kernel.protect(module, component, settings.clone()))
    }

    /// What is to be done about a death. None: no module has decided.
    pub fn decide(&mut self, component: &str, death: &Death) -> Option<Decision> {
        let payload = Payload::of(death).ok()?;
        for _ in 0..ASKED {
            self.desk.borrow_mut().ask();
            self.raise(component, comp::DIED, payload.clone());
            let decision = self.desk.borrow_mut().answer();
            let notices = self.kernel.take_notices();
            let has_failed = notices.iter().any(|notice| matches!(notice, Notice::Unloaded { again: true, .. }));
            self.notices.extend(notices);
            if decision.is_some() || !has_failed {
                return decision;
            }
        }
        None
    }

    /// How often calls are to be looked at; none: no module wants to see them.
    pub fn every(&self) -> Option<Duration> {
        self.desk.borrow().every
    }

    /// Whether a component that was seen to be so hangs.
    pub fn hangs(&mut self, component: &str, look: &Look) -> Option<Hang> {
        self.desk.borrow_mut().hang = None;
        self.raise(component, comp::LOOKED, Payload::of(look).ok()?);
        self.desk.borrow_mut().hang.take()
    }

    /// Tells of what needs no decision.
    pub fn raise(&mut self, component: &str, event: &'static str, payload: Payload) {
        self.kernel.raise(Event { pin: comp::NAME, name: event, program: Some(component.into()), payload });
    }

    /// What modules said, and how they failed, since this was asked last.
    pub fn notices(&mut self) -> Vec<Notice> {
        self.notices.extend(self.kernel.take_notices());
        std::mem::take(&mut self.notices)
    }
}
