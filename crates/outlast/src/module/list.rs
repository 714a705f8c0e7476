//! `outlast module list`: all modules, or those of a program.

use crate::installed::{self, Installed};
use crate::listing::names;
use crate::output::{self, columns};
use crate::state;
use clap::Args;
use outlast_pins::Wishes;
use outlast_supervisor::meta::Meta;
use outlast_supervisor::state_folder::StateFolder;
use outlast_supervisor::{status, wishing, Error};
use serde::Serialize;
use std::collections::BTreeSet;

/// List all modules and the programs that each protects, or those of a program and their settings
#[derive(Args)]
pub struct List {
    /// Those of this program, as options of `outlast run`
    program: Option<String>,
    /// One array of JSON objects
    #[arg(long)]
    json: bool,
}

/// A module, as the list shows it.
#[derive(Serialize)]
struct Row {
    name: String,
    kind: &'static str,
    what: String,
    programs: Vec<String>,
}

/// The same, of one program.
#[derive(Serialize)]
struct Own {
    name: String,
    what: String,
    /// As options of `outlast run`.
    settings: String,
    /// False: it has failed too often, and is to protect the program and does not; null: its supervisor has not said.
    loaded: Option<bool>,
}

impl List {
    pub fn execute(self) -> Result<i32, Error> {
        match self.program {
            None => list(self.json),
            Some(program) => list_of(&program, self.json),
        }
    }
}

fn list(json: bool) -> Result<i32, Error> {
    let programs = protected(&state::open()?)?;
    let of = |name: &str| {
        let has = programs.iter().filter(|(_, wishes)| wishes.modules().contains(&name));
        has.map(|(program, _)| program.clone()).collect()
    };
    let row = |name: &str, kind, what: &str| Row { name: name.into(), kind, what: what.into(), programs: of(name) };
    let of_machine = outlast_modules::of_machine();
    let of_components = outlast_modules::of_components();
    let built_in = outlast_modules::all();
    let built_in = built_in.iter().chain(&of_machine).chain(&of_components);
    let mut rows: Vec<_> = built_in.map(|module| row(module.name, "built-in", module.what)).collect();
    let loaded = Installed::open()?.map_or(Ok(Vec::new()), |installed| installed.names())?;
    for name in &loaded {
        rows.push(row(name, "plug-in", &installed::file_of(name)?.display().to_string()));
    }
    let wished: BTreeSet<&str> =
        programs.iter().flat_map(|(_, wishes)| wishes.plugins.iter().map(|plugin| &*plugin.name)).collect();
    let unloaded = wished.into_iter().filter(|name| loaded.iter().all(|loaded| loaded != name));
    rows.extend(unloaded.map(|name| row(name, "unloaded", "-")));
    if json {
        return output::json(&rows);
    }
    let head = ["MODULE", "KIND", "PROTECTS", "WHAT"].map(String::from);
    let cells = rows.iter().map(|row| [row.name.clone(), row.kind.into(), names(&row.programs), row.what.clone()]);
    output::text(&columns(std::iter::once(head).chain(cells)))
}

fn list_of(program: &str, json: bool) -> Result<i32, Error> {
    let folder = state::open()?.program(program)?;
    let options = Meta::read(&folder)?.options;
    let (wishes, parts) = (Wishes::of(&options), wishing::parts(&folder));
    let row = |name: &str, what: String| {
        let loaded = parts.as_ref().map(|parts| parts.modules.iter().any(|loaded| loaded == name));
        let settings = wishes.words(name)?;
        Some(Own { name: name.into(), what, settings, loaded })
    };
    let built_in = outlast_modules::all().into_iter().filter_map(|module| row(module.name, module.what.into()));
    let plugins = wishes.plugins.iter().filter_map(|plugin| row(&plugin.name, plugin.file.display().to_string()));
    let rows: Vec<_> = built_in.chain(plugins).collect();
    if json {
        return output::json(&rows);
    }
    let head = ["MODULE", "SETTINGS", "WHAT"].map(String::from);
    let cells = rows.iter().map(|row| {
        let failed =
            if row.loaded == Some(false) { " (it failed too often; `outlast module add` loads it again)" } else { "" };
        [row.name.clone(), row.settings.clone(), format!("{}{failed}", row.what)]
    });
    output::text(&columns(std::iter::once(head).chain(cells)))
}

/// The programs that run protected, and in which way.
fn protected(state: &StateFolder) -> Result<Vec<(String, Wishes)>, Error> {
    let running = status::all(state)?.into_iter().filter(|program| program.ended.is_none() && program.protected);
    let wishes = |name: &str| Some(Wishes::of(&Meta::read(&state.program(name).ok()?).ok()?.options));
    // One that ended just now is none any more.
    Ok(running.filter_map(|program| wishes(&program.name).map(|wishes| (program.name, wishes))).collect())
}
