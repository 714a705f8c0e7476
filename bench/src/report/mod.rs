//! What was found, for a person and for a program.

pub mod json;
pub mod table;
