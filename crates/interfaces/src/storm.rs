//! Settings of the module `storm`.

use serde::{Deserialize, Serialize};
use std::time::Duration;

pub const NAME: &str = "storm";

/// What `outlast run` does unless told otherwise.
pub const USUAL: Settings = Settings { most: 5, within: Duration::from_secs(60) };

/// For one program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// So many recoveries are none yet.
    pub most: u32,
    /// In which time.
    pub within: Duration,
}
