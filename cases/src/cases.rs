//! The cases, one file each.

mod pipe_counter;

use crate::case::Case;

/// Every case, in the order in which they run.
pub const ALL: &[Case] = &[pipe_counter::CASE];
