//! Pins on Linux, and what they have in common with the supervisor of a program: the [`desk`](desk::Desk) on which modules lay what they
//! have decided.

mod dbr;
mod desk;
mod file;
mod ipc;
mod looks;
mod mem;
mod net;
mod peri;
mod pmc;
mod proc;
mod protection;
mod seen;
mod sig;
mod sysc;

pub use protection::{Protection, Wishes};
