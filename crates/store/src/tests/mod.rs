//! Proofs that need to see the inside, or to switch a check off.

pub mod mutant;
mod plain;
