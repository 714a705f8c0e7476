//! All programs of a user are left alone at once.

use crate::output;
use clap::Args;
use outlast_supervisor::state_folder::StateFolder;
use outlast_supervisor::{ask, status, Error};
use std::thread;

/// Leave all programs alone that run
#[derive(Args)]
pub struct Leave {}

impl Leave {
    pub fn execute(self) -> Result<i32, Error> {
        output::json(&all()?)
    }
}

/// What would not let go, and why. One that takes its time holds up no other.
pub fn all() -> Result<Vec<String>, Error> {
    // Whoever watches them is not to be brought back for this.
    let state = StateFolder::open()?;
    let running = status::all(&state)?.into_iter().filter(|program| program.ended.is_none() && program.protected);
    let names: Vec<String> = running.map(|program| program.name).collect();
    let leave = |name: &String| match state.program(name).and_then(|folder| ask::detach(&folder)) {
        // It has ended meanwhile, or somebody else was first.
        Ok(()) | Err(Error::NotRunning(_) | Error::NotProtected(_)) => None,
        Err(e) => Some(e.to_string()),
    };
    Ok(thread::scope(|scope| {
        let threads: Vec<_> = names.iter().map(|name| scope.spawn(move || leave(name))).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok().flatten()).collect()
    }))
}
