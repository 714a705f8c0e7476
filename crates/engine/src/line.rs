//! A cache line.

/// What lies in a cache line of its own: others look at it all the time, or change it, and would have the neighbours move from
/// processor to processor with it.
#[repr(C, align(64))]
pub struct Line<T>(pub T);
