//! Bounds that hold whatever modules decide.

use std::time::Duration;

/// Deaths that the same call was being executed at, with which it is not repeated any more.
pub const TORN: u32 = 12;

/// A call that neither ends nor blocks for so long has hung. Too early a verdict costs a micro-reboot that nobody sees.
pub const HANG: Duration = Duration::from_secs(2);
/// The same where others go on: it may only have to wait for its turn.
pub const ALONE: Duration = Duration::from_secs(10);
