//! Settings of the module `crash`.

use serde::{Deserialize, Serialize};

pub const NAME: &str = "crash";

/// For one program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Attempts against the same fault at the same commit.
    pub retries: u32,
}
