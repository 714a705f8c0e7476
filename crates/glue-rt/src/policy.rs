//! Bounds that hold whatever modules decide.

/// Deaths that the same call was being executed at, with which it is not repeated any more.
pub const TORN: u32 = 12;
