//! All measurements: the table of promises, one file for each kind.

mod calls;
mod commit;
mod computation;
mod interactive;
mod memory;
mod print;
mod respawn;
mod rollback;
mod startup;

use crate::measurement::Measurement;
use calls::Calls;
use commit::{Commit, Means};
use computation::Computation;
use interactive::Interactive;
use memory::Memory;
use print::Print;
use respawn::Respawn;
use rollback::Rollback;
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
        Box::new(Rollback),
        Box::new(Respawn { megabytes: 10, commits: 0, limit: 4.0 }),
        Box::new(Respawn { megabytes: 1024, commits: 0, limit: 12.0 }),
        Box::new(Respawn { megabytes: 10, commits: 10_000, limit: 4.0 }),
        Box::new(Respawn { megabytes: 1024, commits: 10_000, limit: 12.0 }),
        Box::new(Computation::Gzip),
        Box::new(Computation::Python),
        Box::new(Interactive::nvi()),
        Box::new(Interactive::sc()),
        Box::new(Interactive::game()),
        Box::new(Startup),
        Box::new(Memory { megabytes: 10 }),
        Box::new(Memory { megabytes: 500 }),
    ]
}
