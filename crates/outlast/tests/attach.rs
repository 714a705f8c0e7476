//! A program that runs already is attached to, and outlasts its death from then on.

#[path = "attach/afterwards.rs"]
mod afterwards;
#[path = "attach/bases.rs"]
mod bases;
#[path = "attach/ending.rs"]
mod ending;
#[path = "attach/moments.rs"]
mod moments;
#[path = "attach/printing.rs"]
mod printing;
#[path = "attach/program.rs"]
mod program;
#[path = "attach/refusals.rs"]
mod refusals;
#[path = "attach/state.rs"]
mod state;
mod support;
#[path = "attach/waits.rs"]
mod waits;
