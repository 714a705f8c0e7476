//! Input that the program took since its commit: noted, so that a rollback need not lose it, and a read need not be preceded
//! by a commit.
//!
//! What a read takes lands in the session, where it outlives the process, and goes from there into the journal, as an `INPUT`.
//! A restored program finds it in a log: whoever reads from the same source gets that first, and poll, select, epoll and
//! FIONREAD answer accordingly, until nothing is left (see [`readiness`]). It need not do what its predecessor did:
//! nobody has seen anything of that. A commit that comes before the log is empty keeps the rest, as objects.
//!
//! Only streams are noted, pipes, sockets and terminals, whose bytes have no bounds that a reader could see; all other input is
//! preceded by a commit as ever. A cold resume makes anew what was the program's alone, as it was at the commit: of that nothing was read
//! since. Identifiers of these operations are those of the commit, with parts that no output reaches.

mod log;
mod noting;
pub mod readiness;
mod serving;

pub use log::{forget, load, save, Head, Log};
pub use noting::{has_room, recover, source_of, take, Noted};
pub use serving::serve_again;

use crate::control::degrade;
use crate::state::Engine;
use outlast_image::degradation::Degradation;

/// Somebody without the log goes on with the program's descriptors.
pub fn leave(e: &Engine) {
    if !e.inputs.is_empty() {
        degrade(Degradation::InputLost);
    }
}
