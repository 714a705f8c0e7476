//! Settings of the module `checkpoint`.

use serde::{Deserialize, Serialize};
use std::time::Duration;

pub const NAME: &str = "checkpoint";

/// For one program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    pub every: Duration,
    /// The interval may grow, so that commits take no more than a hundredth of the time.
    pub sparing: bool,
}
