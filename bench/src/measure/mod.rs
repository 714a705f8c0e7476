//! All measurements: the table of promises, one file for each kind.

mod calls;
mod commit;
mod print;
mod startup;

use crate::measurement::Measurement;
use calls::Calls;
use commit::{Commit, Means};
use print::Print;
use startup::Startup;

/// Everything that is promised, in the order of SPECIFICATION.md.
pub fn all() -> Vec<Box<dyn Measurement>> {
    vec![
        Box::new(Commit::hot(10, Means::Bpf)),
        Box::new(Commit::hot(1024, Means::Bpf)),
        Box::new(Commit::hot(10, Means::NoBpf)),
        Box::new(Commit::hot(1024, Means::NoBpf)),
        Box::new(Commit::cold(Means::Bpf)),
        Box::new(Commit::cold(Means::NoBpf)),
        Box::new(Commit::cold_hundred()),
        Box::new(Print),
        Box::new(Calls),
        Box::new(Startup),
    ]
}
