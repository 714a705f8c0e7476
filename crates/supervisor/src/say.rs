//! What outlast itself has to say. Where nobody can hear it, on a full disk or a broken pipe, that is no reason to end.

use std::fmt::Arguments;
use std::io::Write;

/// A line on standard error.
pub fn say(what: Arguments<'_>) {
    let _ = std::io::stderr().write_all(format!("outlast: {what}\n").as_bytes());
}
