//! Modules that are loaded from files: Wasm components with the world of `wit/module.wit`.
//!
//! A component is given what [`outlast_core::Calls`] gives a module and nothing else: no files, no clock, no environment. It computes within
//! a time and a memory of its own, and whatever it does wrong ends there: it is unloaded like a module that panicked, and this process goes on.

#![forbid(unsafe_op_in_unsafe_fn)]

mod answers;
mod bindings;
mod commands;
mod compiled;
mod deadline;
mod engine;
mod error;
mod events;
mod file;
mod host;
mod limits;
mod looks;
mod plugin;

#[cfg(test)]
mod tests;

pub use compiled::Compiled;
pub use error::Error;
pub use file::{read, read_own};
pub use plugin::manifest;

/// The package that components are made for, as text.
pub const WIT: &str = concat!(include_str!("../wit/module.wit"), "\n", include_str!("../wit/looks.wit"));
