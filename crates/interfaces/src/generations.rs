//! Settings of the module `generations`.

use serde::{Deserialize, Serialize};
use std::time::Duration;

pub const NAME: &str = "generations";

/// What `outlast run --generations 10s` means.
pub const USUAL: Settings =
    Settings { every: Duration::from_secs(10), keep: Duration::from_secs(3600), budget: 256 << 20 };

/// For one program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// How often a state is kept.
    pub every: Duration,
    /// For how long.
    pub keep: Duration,
    /// In how much room, bytes.
    pub budget: u64,
}
