//! Plain data: the state of a protected process, and the memory that engine and supervisor share.
//!
//! No behaviour, no I/O, no allocation: every type here is `#[repr(C)]`, has no padding that matters
//! and can be read from untrusted bytes. Who writes and who reads each field is said at the field.
#![no_std]

pub mod children;
pub mod context;
pub mod control;
pub mod degradation;
pub mod descriptor;
pub mod durations;
pub mod event;
pub mod fault_list;
pub mod filters;
pub mod history;
pub mod inject;
pub mod journal;
pub mod kernel;
pub mod layout;
pub mod mutant;
pub mod notifiers;
pub mod own_file;
pub mod pending;
pub mod region;
pub mod sections;
pub mod successor;
pub mod taking_part;
