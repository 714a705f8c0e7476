//! The compiler `glue`: from the interface of a component, in SuperGlue's words, to stubs that hold its recovery code.
//!
//! The way of an interface: `token` → `parse` → `syntax` (as written) → `check` → `model` (as meant) → `rust`, `c`, `graph`.
//! No stage panics on bad input and none stops at the first error: each returns what it understood, and diagnostics.

pub mod c;
pub mod check;
pub mod diagnostic;
pub mod graph;
pub mod mechanism;
pub mod model;
pub mod parse;
pub mod rust;
pub mod syntax;
mod text;
pub mod token;
mod writer;

pub use diagnostic::{Diagnostic, Severity};
pub use mechanism::Mechanism;
pub use model::Interface;

/// What a text means, and all that is to be said about it; no interface if there is an error.
pub fn understand(text: &str) -> (Option<Interface>, Vec<Diagnostic>) {
    let (file, mut diagnostics) = parse::parse(text);
    let interface = check::check(&file, &mut diagnostics);
    let failed = diagnostics.iter().any(|d| d.severity == Severity::Error);
    (interface.filter(|_| !failed), diagnostics)
}
