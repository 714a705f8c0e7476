//! One table or figure of a paper, as it was measured.

use super::surroundings::{Surroundings, Watch};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Section<T> {
    /// None if it was not asked for.
    pub surroundings: Option<Surroundings>,
    pub entries: Vec<T>,
}

impl<T> Default for Section<T> {
    fn default() -> Self {
        Self { surroundings: None, entries: Vec::new() }
    }
}

impl<T> Section<T> {
    /// All that belongs to it, and who else used the machine meanwhile.
    pub fn measure(is_wanted: bool, entries: impl FnOnce() -> Vec<T>) -> Self {
        if !is_wanted {
            return Self::default();
        }
        let watch = Watch::begin();
        let entries = entries();
        Self { surroundings: Some(watch.end()), entries }
    }
}
