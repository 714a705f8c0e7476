//! Pins on Linux, and what they have in common with the supervisor of a program: the [`desk`](desk::Desk) on which modules lay what they
//! have decided.

mod abroad;
mod change;
mod channel;
mod dbr;
mod desk;
mod file;
mod ipc;
mod looks;
mod machine;
mod mem;
mod net;
mod peri;
mod pmc;
mod proc;
mod protection;
mod remote;
mod schl;
mod sect;
mod seen;
mod sig;
mod sysc;
mod wishes;

pub use abroad::{Abroad, Heard};
pub use machine::Machine;
pub use protection::Protection;
pub use schl::Place;
pub use wishes::Wishes;
