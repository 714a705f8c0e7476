//! Fault injection: campaigns of experiments, each of which harms one run of a program once and is judged from outside.
//!
//! A campaign file says what is run, in which settings (by itself, under `outlast run` with these options) and which faults
//! strike it. What strikes when is drawn from the seed alone, so that every setting meets the same faults. Nothing here
//! knows how outlast recovers: what it did is read from its log, as a person would.

mod branch;
mod call_numbers;
mod campaign;
mod capture;
mod debug_register;
mod descendant;
mod draw;
mod error;
mod experiment;
mod group;
pub mod harm;
pub mod judge;
mod launch;
mod liveness;
mod memory_map;
mod moment;
mod oracle;
mod ptrace;
mod reaction;
mod reading;
mod record;
mod registers;
mod remote_call;
pub mod report;
mod results;
mod room;
mod runner;
mod strike;
mod symbols;
mod traced;
mod tracee;
mod view;
mod waiting;

pub use error::Error;
pub use runner::{run, Request};
