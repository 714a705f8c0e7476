//! Going on without a ring.

use super::Ring;
use crate::control::degrade;
use crate::noted::{completions, transfer};
use crate::state::{Engine, OwnFd};
use outlast_image::degradation::Degradation;

/// There is no ring any more: it may not be had, or not for what it is needed for now. A commit stands before none of its
/// operations.
pub fn give_up(e: &mut Engine) {
    if e.ring.available() {
        e.close_own(OwnFd::Ring);
    }
    e.ring = Ring::none();
    transfer::set_up(e);
    completions::set_up(e);
    degrade(Degradation::NoRing);
}
