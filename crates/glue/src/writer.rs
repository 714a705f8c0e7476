//! What the generators of all languages are given.

use crate::mechanism::Mechanism;
use crate::model::Interface;

pub struct Writer<'a> {
    pub interface: &'a Interface,
    /// Mechanisms that are left out, to see what they are for.
    pub without: &'a [Mechanism],
    /// Whether states of descriptors are kept, which recovery needs and nothing else.
    pub tracks: bool,
}

impl Writer<'_> {
    /// Whether the mechanism is needed here and wanted.
    pub fn has(&self, mechanism: Mechanism) -> bool {
        self.interface.mechanisms().contains(&mechanism) && !self.without.contains(&mechanism)
    }

    /// Its name and purpose, for the comment before its block.
    pub fn mark(&self, mechanism: Mechanism) -> String {
        format!("{mechanism:?}: {}.", mechanism.purpose())
    }

    /// What the stubs recover by, and what was left out.
    pub fn summary(&self) -> Vec<String> {
        let used: Vec<String> = self.interface.mechanisms().iter().map(|m| format!("{m:?}")).collect();
        let mut summary = vec![format!("Recovery: {}.", used.join(", "))];
        if !self.tracks {
            return vec!["Nothing is tracked and nothing recovered.".to_string()];
        }
        if !self.without.is_empty() {
            summary.push(format!("Left out: {:?}.", self.without));
        }
        summary
    }
}
