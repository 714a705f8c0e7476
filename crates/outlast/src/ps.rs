//! `outlast ps`: what is protected, and systems of components.

use crate::output::{self, columns};
use crate::{state, switch};
use clap::Args;
use outlast_supervisor::status::{all, Status};
use outlast_supervisor::systems::{self, System};
use outlast_supervisor::Error;
use serde::Serialize;

/// List the programs that are protected, or can be resumed, and systems of components
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
        let mut systems = systems::all(&state)?;
        systems.retain(|system| self.all || system.pid.is_some());
        let rows: Vec<Row> = programs.iter().map(Row::Program).chain(systems.iter().map(Row::System)).collect();
        if self.json {
            return output::json(&rows);
        }
        if rows.is_empty() {
            return Ok(0);
        }
        let head = ["NAME", "PID", "STATE", "COMMITS", "RECOVERIES", "NOT PRESERVED"].map(String::from);
        output::text(&columns(std::iter::once(head).chain(rows.iter().map(Row::cells))))
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum Row<'a> {
    Program(&'a Status),
    System(&'a System),
}

impl Row<'_> {
    fn cells(&self) -> [String; 6] {
        match self {
            Self::Program(program) => row(program),
            Self::System(system) => of_system(system),
        }
    }
}

/// A system commits nothing; what it could not bring back are components that were given up.
fn of_system(system: &System) -> [String; 6] {
    let count = system.components.len();
    let plural = if count == 1 { "" } else { "s" };
    let given_up = system.components.iter().filter(|component| component.state == "given up");
    let given_up: Vec<String> = given_up.map(|component| component.name.clone()).collect();
    [
        system.name.clone(),
        system.pid.map_or_else(|| "-".into(), |pid| pid.to_string()),
        if system.pid.is_some() { format!("{count} component{plural}") } else { system.state.into() },
        "-".into(),
        system.recoveries.to_string(),
        if given_up.is_empty() { "-".into() } else { given_up.join(", ") },
    ]
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
