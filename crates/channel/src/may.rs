//! What of this node's another one may use.

use outlast_core::Interface;
use std::collections::BTreeSet;

/// Operations and events that it may have; a node that is only asked has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct May(BTreeSet<(&'static str, &'static str)>);

impl May {
    /// Adds what `PIN` (all of it) or `PIN/NAME` (an operation or event) stands for.
    ///
    /// # Errors
    /// In words: there is no such thing.
    pub fn add(&mut self, word: &str, pins: &[&'static Interface]) -> Result<(), String> {
        let (pin, name) = word.split_once('/').map_or((word, None), |(pin, name)| (pin, Some(name)));
        let Some(interface) = pins.iter().find(|interface| interface.name == pin) else {
            let known: Vec<_> = pins.iter().map(|interface| interface.name).collect();
            return Err(format!("other nodes can use no pin {pin:?}; there are {}", known.join(", ")));
        };
        let all = interface.operations.iter().chain(interface.events).map(|named| named.name);
        let wanted: Vec<_> = all.clone().filter(|known| name.is_none_or(|name| name == *known)).collect();
        if wanted.is_empty() {
            let known = all.collect::<Vec<_>>().join(", ");
            return Err(format!("{pin} has no {:?}; there are {known}", name.unwrap_or_default()));
        }
        self.0.extend(wanted.into_iter().map(|name| (interface.name, name)));
        Ok(())
    }

    /// Whether it may use anything at all.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it may use something of this pin.
    pub fn has_pin(&self, pin: &str) -> bool {
        self.0.iter().any(|(known, _)| *known == pin)
    }

    /// Whether it may have this operation performed, or be told of this event.
    pub fn has(&self, pin: &str, name: &str) -> bool {
        self.0.iter().any(|(known, of)| *known == pin && *of == name)
    }

    /// As it could be written.
    pub fn words(&self) -> Vec<String> {
        self.0.iter().map(|(pin, name)| format!("{pin}/{name}")).collect()
    }
}
