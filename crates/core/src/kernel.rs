//! The microkernel: module manager and dispatcher.

use crate::calls::Calls;
use crate::confine::{self, Overrun};
use crate::failure::Failure;
use crate::interface::Interface;
use crate::module::{Event, Manifest, Module};
use crate::payload::Payload;
use crate::pin::{Make, PinId, Pins};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What an administrator may want to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A module failed and is gone; whether it was loaded again.
    Unloaded { module: &'static str, why: Overrun, again: bool },
    /// A module could not do what it wanted to.
    Failed { module: &'static str, failure: Failure },
    /// A module has something to say.
    Said { module: &'static str, what: String },
}

impl std::fmt::Display for Notice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unloaded { module, why, again: true } => write!(f, "{module}: {why}"),
            Self::Unloaded { module, why, again: false } => write!(f, "{module}: {why}; it is not loaded any more"),
            Self::Failed { module, failure } => write!(f, "{module}: {failure}"),
            Self::Said { module, what } => write!(f, "{module}: {what}"),
        }
    }
}

/// A module that was loaded once.
struct Slot {
    manifest: Manifest,
    /// None while it runs, and when it is unloaded.
    module: Option<Box<dyn Module>>,
    is_loaded: bool,
    failures: u32,
    pins: BTreeSet<PinId>,
    events: BTreeSet<(PinId, &'static str)>,
    programs: BTreeMap<String, Payload>,
}

/// The core.
#[derive(Default)]
pub struct Microkernel {
    pins: Pins,
    slots: Vec<Slot>,
    queue: VecDeque<Event>,
    notices: Vec<Notice>,
}

impl Microkernel {
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes a pin known; it is loaded when a module asks for it.
    pub fn install_pin(&mut self, interface: &'static Interface, make: Make) {
        self.pins.install(interface, make);
    }

    /// Makes a pin unknown, which can be installed again. Who asks for it meanwhile is told that there is none.
    ///
    /// # Errors
    /// There is no such pin, or a module uses it.
    pub fn uninstall_pin(&mut self, name: &str) -> Result<(), Failure> {
        let pin = self.pins.find(name)?;
        let users = self.users_of(name);
        if !users.is_empty() {
            return Err(Failure::PinUsed(name.into(), users.join(", ")));
        }
        self.pins.uninstall(pin);
        Ok(())
    }

    /// The modules that use a pin.
    pub fn users_of(&self, pin: &str) -> Vec<&'static str> {
        let Ok(pin) = self.pins.find(pin) else { return Vec::new() };
        let users = self.slots.iter().filter(|slot| slot.is_loaded && slot.pins.contains(&pin));
        users.map(|slot| slot.manifest.name).collect()
    }

    /// All pins that are known, and whether they are loaded.
    pub fn pins(&self) -> impl Iterator<Item = (&'static Interface, bool)> + '_ {
        self.pins.all()
    }

    /// The modules that are loaded, and the programs that each protects.
    pub fn modules(&self) -> impl Iterator<Item = (&Manifest, Vec<&str>)> {
        let loaded = self.slots.iter().filter(|slot| slot.is_loaded);
        loaded.map(|slot| (&slot.manifest, slot.programs.keys().map(String::as_str).collect()))
    }

    /// Loads a module, and with it the pins that it asks for.
    ///
    /// # Errors
    /// It is loaded already, or cannot work here, for want of a pin say.
    pub fn load(&mut self, manifest: Manifest) -> Result<(), Failure> {
        let at = match self.slots.iter().position(|slot| slot.manifest.name == manifest.name) {
            Some(at) if self.slots[at].is_loaded => return Err(Failure::Loaded(manifest.name.into())),
            Some(at) => at,
            None => {
                self.slots.push(Slot {
                    manifest,
                    module: None,
                    is_loaded: false,
                    failures: 0,
                    pins: BTreeSet::new(),
                    events: BTreeSet::new(),
                    programs: BTreeMap::new(),
                });
                self.slots.len() - 1
            }
        };
        let slot = &mut self.slots[at];
        (slot.manifest, slot.failures) = (manifest, 0);
        self.begin(at)
    }

    /// Unloads a module, and with it pins that only it needs.
    ///
    /// # Errors
    /// It is not loaded.
    pub fn unload(&mut self, name: &str) -> Result<(), Failure> {
        let at = self.loaded(name)?;
        let programs: Vec<String> = self.slots[at].programs.keys().cloned().collect();
        self.slots[at].manifest.reloads = 0;
        for program in programs {
            // One that fails at this is gone as well.
            let _ = self.release(name, &program);
        }
        self.remove(at);
        Ok(())
    }

    /// Has a module protect a program.
    ///
    /// # Errors
    /// The module is not loaded, or refuses these settings.
    pub fn protect(&mut self, name: &str, program: &str, settings: Payload) -> Result<(), Failure> {
        let at = self.loaded(name)?;
        self.slots[at].programs.insert(program.into(), settings.clone());
        let protected = self.call(at, |module, calls| module.protect(calls, program, &settings));
        let protected = protected.unwrap_or_else(|| Err(Failure::Failed(name.into())));
        if protected.is_err() {
            self.slots[at].programs.remove(program);
        }
        protected
    }

    /// Has a module protect a program no longer.
    ///
    /// # Errors
    /// The module is not loaded.
    pub fn release(&mut self, name: &str, program: &str) -> Result<(), Failure> {
        let at = self.loaded(name)?;
        if self.slots[at].programs.remove(program).is_some() {
            // One that fails at this protects it no longer either.
            let _ = self.call(at, |module, calls| module.release(calls, program));
        }
        Ok(())
    }

    /// Delivers an event, and all that it brings about.
    pub fn raise(&mut self, event: Event) {
        self.queue.push_back(event);
        while let Some(event) = self.queue.pop_front() {
            // By number: a module may load or unload none, but one that fails is removed in between.
            for at in 0..self.slots.len() {
                if self.is_for(at, &event) {
                    let told = self.call(at, |module, calls| module.on_event(calls, &event));
                    // Of one that is gone there is a notice already.
                    if let Some(Err(failure)) = told {
                        self.notices.push(Notice::Failed { module: self.slots[at].manifest.name, failure });
                    }
                }
            }
        }
    }

    /// What has happened to modules since this was asked last.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    fn is_for(&self, at: usize, event: &Event) -> bool {
        let slot = &self.slots[at];
        let protects = |program: &String| slot.programs.contains_key(program);
        let Ok(pin) = self.pins.find(event.pin) else { return false };
        slot.is_loaded && slot.events.contains(&(pin, event.name)) && event.program.as_ref().is_none_or(protects)
    }

    fn loaded(&self, name: &str) -> Result<usize, Failure> {
        let at = self.slots.iter().position(|slot| slot.manifest.name == name && slot.is_loaded);
        at.ok_or_else(|| Failure::NoSuchModule(name.into()))
    }

    fn begin(&mut self, at: usize) -> Result<(), Failure> {
        let slot = &mut self.slots[at];
        slot.module = Some((slot.manifest.make)());
        slot.is_loaded = true;
        match self.call(at, |module, calls| module.start(calls)) {
            Some(Ok(())) => Ok(()),
            Some(Err(failure)) => {
                self.remove(at);
                Err(failure)
            }
            // It may have been loaded again since.
            None if self.slots[at].is_loaded => Ok(()),
            None => Err(Failure::Failed(self.slots[at].manifest.name.into())),
        }
    }

    /// Calls a module, confined. None: it failed, and is gone or another one by now.
    fn call<T>(&mut self, at: usize, body: impl FnOnce(&mut dyn Module, &mut Calls) -> T) -> Option<T> {
        let Manifest { name, budget, .. } = self.slots[at].manifest;
        let mut module = self.slots[at].module.take()?;
        let mut calls = Calls { kernel: self, module: at, failed: None };
        let result = confine::run(name, budget, || body(module.as_mut(), &mut calls));
        let failed = calls.failed.take();
        match result.and_then(|result| failed.map_or(Ok(result), Err)) {
            Ok(result) => {
                self.slots[at].module = Some(module);
                Some(result)
            }
            Err(why) => {
                // What it left may be in any state.
                let _ = confine::run(name, budget, || drop(module));
                self.has_failed(at, why);
                None
            }
        }
    }

    fn has_failed(&mut self, at: usize, why: Overrun) {
        let slot = &mut self.slots[at];
        let name = slot.manifest.name;
        slot.failures += 1;
        let may = slot.failures <= slot.manifest.reloads;
        let programs = std::mem::take(&mut slot.programs);
        self.remove(at);
        let again = may && self.begin(at).is_ok();
        self.notices.push(Notice::Unloaded { module: name, why, again });
        if again {
            for (program, settings) in programs {
                // One that it refuses now, or fails with, it protects no more; of a failure there is a notice.
                let _ = self.protect(name, &program, settings);
            }
        }
    }

    /// Takes back all that a module has asked for.
    fn remove(&mut self, at: usize) {
        self.slots[at].is_loaded = false;
        self.slots[at].module = None;
        for pin in self.slots[at].pins.clone() {
            self.release_pin(at, pin);
        }
    }

    pub(crate) fn name(&self, module: usize) -> &'static str {
        self.slots[module].manifest.name
    }

    pub(crate) fn say(&mut self, module: usize, what: String) {
        self.notices.push(Notice::Said { module: self.slots[module].manifest.name, what });
    }

    pub(crate) fn use_pin(&mut self, module: usize, name: &str) -> Result<PinId, Failure> {
        let pin = self.pins.find(name)?;
        self.pins.load(pin)?;
        self.slots[module].pins.insert(pin);
        Ok(pin)
    }

    pub(crate) fn release_pin(&mut self, module: usize, pin: PinId) {
        let events: Vec<_> = self.slots[module].events.iter().filter(|(of, _)| *of == pin).copied().collect();
        for (_, event) in events {
            let _ = self.unsubscribe(module, pin, event);
        }
        self.slots[module].pins.remove(&pin);
        if !self.slots.iter().any(|slot| slot.pins.contains(&pin)) {
            self.pins.unload(pin);
        }
    }

    pub(crate) fn issue_cmd(
        &mut self,
        module: usize,
        pin: PinId,
        operation: &str,
        argument: &Payload,
    ) -> Result<Payload, Failure> {
        let interface = self.in_use(module, pin)?;
        let unknown = || Failure::NoSuchOperation(interface.name.into(), operation.into());
        let operation = interface.operation(operation).ok_or_else(unknown)?;
        let mut raised = Vec::new();
        let loaded = self.pins.loaded(pin).ok_or_else(|| Failure::NotInUse(interface.name.into()))?;
        // A pin is trusted, and may take its time.
        let result = confine::suspended(|| loaded.operate(operation, argument, &mut raised));
        self.queue.extend(raised);
        result
    }

    pub(crate) fn subscribe(&mut self, module: usize, pin: PinId, event: &str) -> Result<(), Failure> {
        let event = self.event(module, pin, event)?;
        let is_first = !self.slots.iter().any(|slot| slot.events.contains(&(pin, event)));
        self.slots[module].events.insert((pin, event));
        if let (true, Some(pin)) = (is_first, self.pins.loaded(pin)) {
            pin.wanted(event, true);
        }
        Ok(())
    }

    pub(crate) fn unsubscribe(&mut self, module: usize, pin: PinId, event: &str) -> Result<(), Failure> {
        let event = self.event(module, pin, event)?;
        let was_there = self.slots[module].events.remove(&(pin, event));
        let is_last = !self.slots.iter().any(|slot| slot.events.contains(&(pin, event)));
        match self.pins.loaded(pin).filter(|_| was_there) {
            Some(pin) if is_last => pin.wanted(event, false),
            Some(pin) => pin.wanted_less(event),
            None => (),
        }
        Ok(())
    }

    fn in_use(&self, module: usize, pin: PinId) -> Result<&'static Interface, Failure> {
        let interface = self.pins.interface(pin);
        let is_used = self.slots[module].pins.contains(&pin);
        is_used.then_some(interface).ok_or_else(|| Failure::NotInUse(interface.name.into()))
    }

    fn event(&self, module: usize, pin: PinId, event: &str) -> Result<&'static str, Failure> {
        let interface = self.in_use(module, pin)?;
        interface.event(event).ok_or_else(|| Failure::NoSuchEvent(interface.name.into(), event.into()))
    }
}
