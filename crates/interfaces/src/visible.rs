//! Settings of the module `visible`.

use crate::sysc::Visible;
use serde::{Deserialize, Serialize};

pub const NAME: &str = "visible";

/// For one program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    pub outputs: Visible,
}
