//! Proofs that need to see the inside, or to switch a check off.

mod damage;
mod history;
mod hostile;
mod image;
mod kill;
mod lag;
#[cfg(feature = "std")]
mod mapped;
mod medium;
mod model;
pub mod mutant;
mod onlooker;
mod plain;
mod power;
mod properties;
mod random;
mod without_pages;
