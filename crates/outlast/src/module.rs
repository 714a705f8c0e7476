//! `outlast module`: the policies that protect programs.

use crate::listing::{names, Listing};
use crate::state;
use clap::Args;
use outlast_pins::Wishes;
use outlast_supervisor::meta::Meta;
use outlast_supervisor::state_folder::StateFolder;
use outlast_supervisor::{status, Error};
use serde::Serialize;

/// Show the modules that protect programs, and which programs each protects
#[derive(Args)]
pub struct Module {
    #[command(subcommand)]
    command: Listing,
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
        let programs = protected(&state::open()?)?;
        let of = |name: &str| {
            let has = programs.iter().filter(|(_, wishes)| wishes.modules().contains(&name));
            has.map(|(program, _)| program.clone()).collect()
        };
        let row =
            |module: &outlast_core::Manifest| Row { name: module.name, what: module.what, programs: of(module.name) };
        let of_machine = outlast_modules::of_machine();
        let rows: Vec<_> = outlast_modules::all().iter().chain(&of_machine).map(row).collect();
        self.command.print(&rows, ["MODULE", "PROTECTS", "WHAT"], |row| {
            [row.name.into(), names(&row.programs), row.what.into()]
        })
    }
}

/// The programs that run protected, and in which way.
fn protected(state: &StateFolder) -> Result<Vec<(String, Wishes)>, Error> {
    let running = status::all(state)?.into_iter().filter(|program| program.ended.is_none() && program.protected);
    let wishes = |name: &str| Some(Wishes::of(&Meta::read(&state.program(name).ok()?).ok()?.options));
    // One that ended just now is none any more.
    Ok(running.filter_map(|program| wishes(&program.name).map(|wishes| (program.name, wishes))).collect())
}
