//! Modules that are loaded from files. Which they are is not known here; their settings are text.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// For one program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wish {
    pub name: String,
    /// From where it is loaded, absolute: whoever takes over may be told of no other place.
    pub file: PathBuf,
    /// The module itself says whether they are any.
    pub settings: String,
}
