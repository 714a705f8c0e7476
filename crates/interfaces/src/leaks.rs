//! Settings of the module `leaks`.

use serde::{Deserialize, Serialize};
use std::time::Duration;

pub const NAME: &str = "leaks";

/// For one program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// It has grown for as long.
    pub window: Duration,
    /// And has come to so many hundredths of what it may have.
    pub percent: u32,
}

/// What is looked for unless more is said.
pub const USUAL: Settings = Settings { window: Duration::from_secs(600), percent: 50 };
