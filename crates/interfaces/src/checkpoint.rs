//! Settings of the module `checkpoint`.

use serde::{Deserialize, Serialize};
use std::time::Duration;

pub const NAME: &str = "checkpoint";

/// What `outlast run` does unless told otherwise, and begins with.
pub const AUTO: Settings = Settings { every: Duration::from_secs(1), sparing: true };

/// For one program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    pub every: Duration,
    /// The interval may grow, so that commits take no more than a hundredth of the time.
    pub sparing: bool,
}
