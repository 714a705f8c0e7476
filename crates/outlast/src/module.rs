//! `outlast module`: the policies that protect programs, and how each does.

mod add;
mod follow;

use crate::listing::names;
use crate::output::{self, columns};
use crate::state;
use add::Add;
use clap::{Args, Subcommand};
use outlast_interfaces::change::Change;
use outlast_pins::Wishes;
use outlast_supervisor::meta::Meta;
use outlast_supervisor::say::say;
use outlast_supervisor::state_folder::StateFolder;
use outlast_supervisor::wishing::{self, Taken};
use outlast_supervisor::{status, Error};
use serde::Serialize;

/// Show, add and remove the modules that protect programs, also programs that run
#[derive(Args)]
pub struct Module {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    List(List),
    Add(Add),
    Remove(Remove),
    #[command(name = outlast_daemon::DESIGNATED, hide = true)]
    Designated(follow::Designated),
    #[command(name = outlast_daemon::FOLLOW, hide = true)]
    Follow(follow::Follow),
}

/// List all modules and the programs that each protects, or those of a program and their settings
#[derive(Args)]
struct List {
    /// Those of this program, as options of `outlast run`
    program: Option<String>,
    /// One array of JSON objects
    #[arg(long)]
    json: bool,
}

/// Have a module protect a program that runs no longer
///
/// Without crash nothing is recovered any more: a fatal signal is the program's end, and after a kill `outlast resume` goes on with it. Without visible
/// it is committed as with `outlast run --commit manual`, without checkpoint no more while it computes.
#[derive(Args)]
struct Remove {
    module: String,
    program: String,
}

/// A module, as the list shows it.
#[derive(Serialize)]
struct Row {
    name: &'static str,
    what: &'static str,
    programs: Vec<String>,
}

/// The same, of one program.
#[derive(Serialize)]
struct Own {
    name: &'static str,
    what: &'static str,
    /// As options of `outlast run`.
    settings: String,
    /// False: it has failed too often, and is to protect the program and does not; null: its supervisor has not said.
    loaded: Option<bool>,
}

impl Module {
    pub fn execute(self) -> Result<i32, Error> {
        match self.command {
            Command::List(List { program: None, json }) => list(json),
            Command::List(List { program: Some(program), json }) => list_of(&program, json),
            Command::Add(add) => match add.wish() {
                Ok((program, change)) => change_of(&program, &change),
                Err(why) => {
                    say(format_args!("{why}"));
                    Ok(2)
                }
            },
            Command::Designated(command) => command.execute(),
            Command::Follow(command) => command.execute(),
            Command::Remove(Remove { module, program }) => change_of(&program, &Change::Remove(module)),
        }
    }
}

fn list(json: bool) -> Result<i32, Error> {
    let programs = protected(&state::open()?)?;
    let of = |name: &str| {
        let has = programs.iter().filter(|(_, wishes)| wishes.modules().contains(&name));
        has.map(|(program, _)| program.clone()).collect()
    };
    let row = |module: &outlast_core::Manifest| Row { name: module.name, what: module.what, programs: of(module.name) };
    let of_machine = outlast_modules::of_machine();
    let rows: Vec<_> = outlast_modules::all().iter().chain(&of_machine).map(row).collect();
    if json {
        return output::json(&rows);
    }
    let head = ["MODULE", "PROTECTS", "WHAT"].map(String::from);
    let cells = rows.iter().map(|row| [row.name.into(), names(&row.programs), row.what.into()]);
    output::text(&columns(std::iter::once(head).chain(cells)))
}

fn list_of(program: &str, json: bool) -> Result<i32, Error> {
    let folder = state::open()?.program(program)?;
    let options = Meta::read(&folder)?.options;
    let (wishes, parts) = (Wishes::of(&options), wishing::parts(&folder));
    let rows = outlast_modules::all().into_iter().filter_map(|module| {
        let loaded = parts.as_ref().map(|parts| parts.modules.iter().any(|name| name == module.name));
        let settings = wishes.words(module.name, &options.alert)?;
        Some(Own { name: module.name, what: module.what, settings, loaded })
    });
    let rows: Vec<_> = rows.collect();
    if json {
        return output::json(&rows);
    }
    let head = ["MODULE", "SETTINGS", "WHAT"].map(String::from);
    let cells = rows.iter().map(|row| {
        let failed =
            if row.loaded == Some(false) { " (it failed too often; `outlast module add` loads it again)" } else { "" };
        [row.name.into(), row.settings.clone(), format!("{}{failed}", row.what)]
    });
    output::text(&columns(std::iter::once(head).chain(cells)))
}

fn change_of(program: &str, change: &Change) -> Result<i32, Error> {
    let folder = state::open()?.program(program)?;
    if wishing::ask(&folder, change)? == Taken::NotYet {
        say(format_args!(
            "{program} is stopped, or stuck in the kernel: its engine goes by that as soon as it goes on"
        ));
    }
    Ok(0)
}

/// The programs that run protected, and in which way.
fn protected(state: &StateFolder) -> Result<Vec<(String, Wishes)>, Error> {
    let running = status::all(state)?.into_iter().filter(|program| program.ended.is_none() && program.protected);
    let wishes = |name: &str| Some(Wishes::of(&Meta::read(&state.program(name).ok()?).ok()?.options));
    // One that ended just now is none any more.
    Ok(running.filter_map(|program| wishes(&program.name).map(|wishes| (program.name, wishes))).collect())
}
