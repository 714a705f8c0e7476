//! What a component can call.

use crate::bindings::outlast::module::calls::Host as CallsHost;
use crate::bindings::outlast::module::looks;
use crate::bindings::outlast::module::types::{self, Answer, Command, Subject};
use crate::limits::Limits;
use crate::{answers, commands, events};
use outlast_core::{Calls, PinId};
use std::ptr::NonNull;

/// So much it may say in one call.
const SAYS: u32 = 4;
/// And so much until it is loaded again, of its own accord or because it cannot do something: that stays in the program's log.
const SAYS_IN_ALL: u32 = 1000;
/// So much of what it says is kept, in characters.
const LONGEST: usize = 400;

/// One component's side of us.
pub struct Host {
    pub limits: Limits,
    /// The core, while the component runs.
    calls: Option<NonNull<Calls<'static>>>,
    /// The pins that it has asked for; it knows them by their places here.
    pins: Vec<PinId>,
    says: u32,
    says_in_all: u32,
}

impl Host {
    pub fn new(memory: usize) -> Self {
        Self { limits: Limits::new(memory), calls: None, pins: Vec::new(), says: 0, says_in_all: SAYS_IN_ALL }
    }

    /// Lets the component have the core until [`Host::take_back`], which must come before `calls` are gone.
    pub fn lend(&mut self, calls: &mut Calls) {
        self.calls = Some(NonNull::from(calls).cast());
        self.says = SAYS;
    }

    pub fn take_back(&mut self) {
        self.calls = None;
    }

    /// Text of the component's as it goes to the log; none: it has said enough.
    pub fn line(&mut self, text: &str) -> Option<String> {
        self.says_in_all = self.says_in_all.checked_sub(1)?;
        let last = if self.says_in_all == 0 { " (and says no more)" } else { "" };
        Some(legible(text) + last)
    }

    fn calls(&mut self) -> Result<&mut Calls<'static>, String> {
        // SAFETY: it was lent for the length of a call of the component, which is under way: nobody else calls this. That the borrow
        // is exclusive is so because whoever lent it waits; the longer lifetime ends with `self`'s borrow.
        self.calls.map(|mut calls| unsafe { calls.as_mut() }).ok_or_else(|| "not now".into())
    }

    fn pin(&self, pin: types::Pin) -> Result<PinId, String> {
        self.pins.get(pin as usize).copied().ok_or_else(|| format!("there is no pin {pin}"))
    }
}

/// Text of a component's as others may see it: not too long, and nothing in it that a terminal would obey.
pub fn legible(text: &str) -> String {
    let short = text.chars().take(LONGEST);
    short.map(|c| if c.is_control() { ' ' } else { c }).collect()
}

impl looks::Host for Host {}

impl types::Host for Host {}

impl CallsHost for Host {
    fn use_pin(&mut self, name: String) -> Result<types::Pin, String> {
        let pin = self.calls()?.use_pin(&name).map_err(|failure| legible(&failure.to_string()))?;
        let place = self.pins.iter().position(|known| *known == pin).unwrap_or_else(|| {
            self.pins.push(pin);
            self.pins.len() - 1
        });
        Ok(place as types::Pin)
    }

    fn release_pin(&mut self, pin: types::Pin) {
        if let (Ok(pin), Ok(calls)) = (self.pin(pin), self.calls()) {
            calls.release_pin(pin);
        }
    }

    fn issue_cmd(&mut self, pin: types::Pin, command: Command) -> Result<Answer, String> {
        let pin = self.pin(pin)?;
        let module = self.calls()?.module();
        let read = answers::of(&command);
        let (name, argument) = commands::operation(module, command).map_err(|failure| failure.to_string())?;
        let result = self.calls()?.issue_cmd(pin, name, &argument);
        result.and_then(|result| read(&result)).map_err(|failure| failure.to_string())
    }

    fn subscr_event(&mut self, pin: types::Pin, event: Subject) -> Result<(), String> {
        let pin = self.pin(pin)?;
        self.calls()?.subscr_event(pin, events::name(event)).map_err(|failure| failure.to_string())
    }

    fn unsubscr_event(&mut self, pin: types::Pin, event: Subject) -> Result<(), String> {
        let pin = self.pin(pin)?;
        self.calls()?.unsubscr_event(pin, events::name(event)).map_err(|failure| failure.to_string())
    }

    fn log(&mut self, text: String) {
        let Some(left) = self.says.checked_sub(1) else { return };
        self.says = left;
        if let (Some(line), Ok(calls)) = (self.line(&text), self.calls()) {
            calls.say(line);
        }
    }
}
