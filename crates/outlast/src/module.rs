//! `outlast module`: the policies that protect programs.

use crate::installed::{self, Installed};
use crate::listing::{names, List, Listing};
use crate::state;
use clap::{Args, Subcommand};
use outlast_pins::Wishes;
use outlast_plugins::{read, Compiled};
use outlast_supervisor::meta::Meta;
use outlast_supervisor::state_folder::StateFolder;
use outlast_supervisor::{status, Error};
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Show the modules that protect programs, and load others from files
#[derive(Args)]
pub struct Module {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    List(List),
    Load(Load),
    Unload(Unload),
}

/// Load a module from a file, a Wasm component, for `outlast run --module`
///
/// The file is checked and copied to a folder of yours (root: /etc/outlast/modules; others: ~/.config/outlast/modules; wherever
/// OUTLAST_MODULES_DIR says). One of the same name is replaced: programs that it protects have the new one when their supervisor begins anew.
#[derive(Args)]
struct Load {
    file: PathBuf,
    /// What it is called  [default: the file's name, without .wasm]
    #[arg(long)]
    name: Option<String>,
}

/// Take a module away that was loaded from a file
///
/// Programs that it protects stay protected by it until their supervisor begins anew, which then tells the log that it is gone.
#[derive(Args)]
struct Unload {
    name: String,
}

/// A module, as the list shows it.
#[derive(Serialize)]
struct Row {
    name: String,
    /// built-in; plug-in: loaded from a file; unloaded: one that was, and that programs still have.
    kind: &'static str,
    what: String,
    programs: Vec<String>,
}

impl Module {
    pub fn execute(self) -> Result<i32, Error> {
        match self.command {
            Command::List(list) => show(list),
            Command::Load(command) => command.execute(),
            Command::Unload(command) => command.execute(),
        }
    }
}

fn show(list: List) -> Result<i32, Error> {
    let programs = protected(&state::open()?)?;
    let of = |name: &str| {
        let has = programs.iter().filter(|(_, wishes)| wishes.modules().contains(&name));
        has.map(|(program, _)| program.clone()).collect()
    };
    let built_in = outlast_modules::all();
    let loaded = Installed::open()?.map_or(Ok(Vec::new()), |installed| installed.names())?;
    let mut rows: Vec<_> = built_in
        .iter()
        .map(|module| Row {
            name: module.name.into(),
            kind: "built-in",
            what: module.what.into(),
            programs: of(module.name),
        })
        .collect();
    for name in &loaded {
        let what = installed::file_of(name)?.display().to_string();
        rows.push(Row { name: name.clone(), kind: "plug-in", what, programs: of(name) });
    }
    let wished: BTreeSet<&str> =
        programs.iter().flat_map(|(_, wishes)| wishes.plugins.iter().map(|plugin| &*plugin.name)).collect();
    for name in wished.into_iter().filter(|name| loaded.iter().all(|loaded| loaded != name)) {
        rows.push(Row { name: name.into(), kind: "unloaded", what: "-".into(), programs: of(name) });
    }
    Listing::List(list).print(&rows, ["MODULE", "KIND", "PROTECTS", "WHAT"], |row| {
        [row.name.clone(), row.kind.into(), names(&row.programs), row.what.clone()]
    })
}

impl Load {
    fn execute(self) -> Result<i32, Error> {
        let stem = || self.file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let name = self.name.clone().or_else(stem).unwrap_or_default();
        installed::check_name(&name)?;
        let refused = |e: outlast_plugins::Error| Error::Plugin(self.file.display().to_string(), e.to_string());
        let bytes = read(&self.file).map_err(refused)?;
        Compiled::of(&bytes).map_err(refused)?;
        Installed::make()?.add(&name, &bytes)?;
        Ok(0)
    }
}

impl Unload {
    fn execute(self) -> Result<i32, Error> {
        installed::check_name(&self.name)?;
        let removed = Installed::open()?.map_or(Ok(false), |installed| installed.remove(&self.name))?;
        match removed {
            true => Ok(0),
            false => Err(Error::Plugin(self.name, "it is not loaded".into())),
        }
    }
}

/// The programs that run protected, and in which way.
fn protected(state: &StateFolder) -> Result<Vec<(String, Wishes)>, Error> {
    let running = status::all(state)?.into_iter().filter(|program| program.ended.is_none() && program.protected);
    let wishes = |name: &str| Some(Wishes::of(&Meta::read(&state.program(name).ok()?).ok()?.options));
    // One that ended just now is none any more.
    Ok(running.filter_map(|program| wishes(&program.name).map(|wishes| (program.name, wishes))).collect())
}
