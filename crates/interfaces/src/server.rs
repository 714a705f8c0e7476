//! Settings of the module `server`.

use serde::{Deserialize, Serialize};

pub const NAME: &str = "server";

/// For one program. There is nothing to choose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {}
