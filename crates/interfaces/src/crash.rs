//! Settings of the module `crash`.

use serde::{Deserialize, Serialize};

pub const NAME: &str = "crash";

/// What `outlast run` does unless told otherwise.
pub const USUAL: Settings = Settings { retries: 3 };

/// For one program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Attempts against the same fault at the same commit.
    pub retries: u32,
}
