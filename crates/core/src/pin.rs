//! Pins, and their manager: loads one when the first module asks for it, lets it go when nobody needs it any more.

use crate::failure::Failure;
use crate::interface::Interface;
use crate::module::Event;
use crate::payload::Payload;
use std::collections::BTreeMap;

/// A mechanism.
pub trait Pin {
    /// Performs one of its operations; which is known to be one. Events that it raises meanwhile go to `raise`.
    ///
    /// # Errors
    /// The argument is of another type, or what was asked cannot be done.
    fn operate(
        &mut self,
        operation: &'static str,
        argument: &Payload,
        raise: &mut Vec<Event>,
    ) -> Result<Payload, Failure>;

    /// The first module has subscribed to the event, or the last has gone.
    fn wanted(&mut self, _event: &'static str, _is_wanted: bool) {}

    /// A module that had subscribed to the event has gone, and others have not: what it had asked for need not go on.
    fn wanted_less(&mut self, _event: &'static str) {}
}

/// Makes a pin, or says why it cannot be had here.
pub type Make = Box<dyn Fn() -> Result<Box<dyn Pin>, String>>;

/// A pin in use by a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PinId(pub(crate) usize);

struct Known {
    interface: &'static Interface,
    make: Make,
    pin: Option<Box<dyn Pin>>,
}

/// All pins there are, and which of them are loaded.
#[derive(Default)]
pub(crate) struct Pins {
    known: Vec<Known>,
    by_name: BTreeMap<&'static str, usize>,
}

impl Pins {
    /// Makes a pin known. It is loaded when it is needed; one of its name that is loaded stays so until nobody needs it.
    pub fn install(&mut self, interface: &'static Interface, make: Make) {
        match self.by_name.get(interface.name) {
            Some(&at) => {
                let pin = self.known[at].pin.take();
                self.known[at] = Known { interface, make, pin };
            }
            None => {
                self.by_name.insert(interface.name, self.known.len());
                self.known.push(Known { interface, make, pin: None });
            }
        }
    }

    /// Makes it unknown. Its place is kept, so that nobody's number for it becomes another one's.
    pub fn uninstall(&mut self, id: PinId) {
        self.unload(id);
        self.by_name.remove(self.known[id.0].interface.name);
    }

    pub fn find(&self, name: &str) -> Result<PinId, Failure> {
        self.by_name.get(name).map(|&at| PinId(at)).ok_or_else(|| Failure::NoSuchPin(name.into()))
    }

    pub fn interface(&self, id: PinId) -> &'static Interface {
        self.known[id.0].interface
    }

    pub fn load(&mut self, id: PinId) -> Result<(), Failure> {
        let known = &mut self.known[id.0];
        if known.pin.is_none() {
            let made = (known.make)().map_err(|why| Failure::Unavailable(known.interface.name.into(), why))?;
            known.pin = Some(made);
        }
        Ok(())
    }

    pub fn unload(&mut self, id: PinId) {
        self.known[id.0].pin = None;
    }

    pub fn loaded(&mut self, id: PinId) -> Option<&mut Box<dyn Pin>> {
        self.known[id.0].pin.as_mut()
    }

    /// All of them, and whether they are loaded.
    pub fn all(&self) -> impl Iterator<Item = (&'static Interface, bool)> + '_ {
        let is_installed = |at: usize, name| self.by_name.get(name) == Some(&at);
        let known = self.known.iter().enumerate().filter(move |(at, known)| is_installed(*at, known.interface.name));
        known.map(|(_, known)| (known.interface, known.pin.is_some()))
    }
}
