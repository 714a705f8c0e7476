//! Pins on Linux, and what they have in common with the supervisor of a program: the [`desk`](desk::Desk) on which modules lay what they
//! have decided.

mod change;
mod desk;
mod peri;
mod pmc;
mod proc;
mod protection;
mod sysc;

pub use protection::{Protection, Wishes};
