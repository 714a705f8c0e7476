//! `outlast module`: the policies that protect programs.

use crate::output::{self, columns};
use crate::state;
use clap::{Args, Subcommand};
use outlast_pins::Wishes;
use outlast_supervisor::meta::Meta;
use outlast_supervisor::state_folder::StateFolder;
use outlast_supervisor::status;
use outlast_supervisor::Error;
use serde::Serialize;

/// Show the modules that protect programs
#[derive(Args)]
pub struct Module {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    List(List),
}

/// List the modules, and which programs each protects
#[derive(Args)]
pub struct List {
    /// One array of JSON objects
    #[arg(long)]
    json: bool,
}

/// A module, as the list shows it.
#[derive(Serialize)]
struct Row {
    name: &'static str,
    what: &'static str,
    programs: Vec<String>,
}

impl Module {
    pub fn execute(self) -> Result<i32, Error> {
        let Command::List(List { json }) = self.command;
        let programs = protected(&state::open()?)?;
        let of = |name: &str| {
            let has = programs.iter().filter(|(_, wishes)| wishes.modules().contains(&name));
            has.map(|(program, _)| program.clone()).collect()
        };
        let rows: Vec<_> = outlast_modules::all()
            .iter()
            .map(|module| Row { name: module.name, what: module.what, programs: of(module.name) })
            .collect();
        if json {
            return output::json(&rows);
        }
        let head = ["MODULE", "PROTECTS", "WHAT"].map(String::from);
        let dash = |text: String| if text.is_empty() { "-".into() } else { text };
        let cells = rows.iter().map(|row| [row.name.into(), dash(row.programs.join(", ")), row.what.into()]);
        output::text(&columns(std::iter::once(head).chain(cells)))
    }
}

/// The programs that run protected, and in which way.
fn protected(state: &StateFolder) -> Result<Vec<(String, Wishes)>, Error> {
    let running = status::all(state)?.into_iter().filter(|program| program.ended.is_none() && program.protected);
    let wishes = |name: &str| Some(Wishes::of(&Meta::read(&state.program(name).ok()?).ok()?.options));
    // One that ended just now is none any more.
    Ok(running.filter_map(|program| wishes(&program.name).map(|wishes| (program.name, wishes))).collect())
}
