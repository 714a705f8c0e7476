//! Settings of the module `reboot`.

use serde::{Deserialize, Serialize};

pub const NAME: &str = "reboot";

/// What holds unless a manager says otherwise. Many, for on a busy machine somebody else's kills may come before a worker has had a
/// processor; all of them together take some ten milliseconds.
pub const USUAL: Settings = Settings { fruitless: 20 };

/// For one component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Deaths in a row without a single completed call in between, with which it is given up.
    pub fruitless: u32,
}
