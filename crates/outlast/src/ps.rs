//! `outlast ps`: what is protected.

use crate::output::{self, columns};
use crate::{state, switch};
use clap::Args;
use outlast_supervisor::status::{all, Status};
use outlast_supervisor::Error;

/// List the programs that are protected, or can be resumed
#[derive(Args)]
pub struct Ps {
    /// One array of JSON objects
    #[arg(long)]
    json: bool,
    /// Also those that have ended
    #[arg(long, short)]
    all: bool,
}

impl Ps {
    pub fn execute(self) -> Result<i32, Error> {
        let state = state::open()?;
        switch::tell(&state);
        let mut programs = all(&state)?;
        programs.retain(|program| self.all || program.ended.is_none() && program.state != "exited");
        if self.json {
            return output::json(&programs);
        }
        if programs.is_empty() {
            return Ok(0);
        }
        let head = ["NAME", "PID", "STATE", "COMMITS", "RECOVERIES", "NOT PRESERVED"].map(String::from);
        output::text(&columns(std::iter::once(head).chain(programs.iter().map(row))))
    }
}

fn row(program: &Status) -> [String; 6] {
    let dash = |text: String| if text.is_empty() { "-".into() } else { text };
    [
        program.name.clone(),
        dash(program.pid.map(|pid| pid.to_string()).unwrap_or_default()),
        program.ended.clone().unwrap_or_else(|| program.state.clone()),
        program.commits.to_string(),
        program.recoveries.to_string(),
        dash(program.degradations.join(", ")),
    ]
}
