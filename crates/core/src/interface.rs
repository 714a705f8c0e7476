//! What a pin says of itself: RMK's Table 3 has one such line for each.

/// Something with a name, and what it is in a few words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named {
    pub name: &'static str,
    pub what: &'static str,
}

/// A pin's operations and events. Arguments and results are types that the pin's interface file names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface {
    pub name: &'static str,
    pub what: &'static str,
    pub operations: &'static [Named],
    pub events: &'static [Named],
}

#[cfg(unix)]
impl Interface {
    pub(crate) fn operation(&self, name: &str) -> Option<&'static str> {
        self.operations.iter().map(|operation| operation.name).find(|known| *known == name)
    }

    pub(crate) fn event(&self, name: &str) -> Option<&'static str> {
        self.events.iter().map(|event| event.name).find(|known| *known == name)
    }
}
