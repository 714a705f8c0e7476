//! `outlast pin`: the mechanisms that modules work with.

use crate::listing::{self, names};
use crate::module::change_of;
use crate::{node, state};
use clap::{Args, Subcommand};
use outlast_channel::frame::Offer;
use outlast_core::Interface;
use outlast_interfaces::change::Change;
use outlast_interfaces::{BETWEEN_NODES, MISSING, OF_COMPONENTS, PINS};
use outlast_supervisor::meta::Meta;
use outlast_supervisor::{status, wishing, Error};
use serde::Serialize;
use std::path::PathBuf;

/// Show the pins that modules work with, their operations and events, also of those that are missing; uninstall and install them
#[derive(Args)]
pub struct Pin {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    List(List),
    Remove(Remove),
    Add(Add),
}

/// Uninstall a pin for a program that runs: modules that ask for it are told that there is none
///
/// Refused while a module that protects the program uses it: see `outlast module remove`.
#[derive(Args)]
struct Remove {
    pin: String,
    program: String,
}

/// Install a pin again that was removed
#[derive(Args)]
struct Add {
    pin: String,
    program: String,
}

/// List all of them, or those of another node that this one may use
#[derive(Args)]
struct List {
    /// Of this node, as it said last
    #[arg(long, value_name = "NAME")]
    node: Option<String>,
    /// One array of JSON objects
    #[arg(long)]
    json: bool,
    #[arg(long, hide = true, value_name = "FILE", default_value = node::SHOWN)]
    daemon: PathBuf,
}

/// A pin of another node.
#[derive(Serialize)]
struct OfNode {
    /// What modules here call it.
    name: String,
    what: String,
    operations: Vec<String>,
    events: Vec<String>,
}

/// A pin, as the list shows it.
#[derive(Serialize)]
struct Row {
    name: &'static str,
    what: &'static str,
    operations: Vec<&'static str>,
    events: Vec<&'static str>,
    /// Those for whom it is loaded.
    programs: Vec<String>,
    /// Those for whom it was uninstalled.
    uninstalled: Vec<String>,
    /// Why it is not there; null: it is.
    missing: Option<&'static str>,
}

impl Pin {
    pub fn execute(self) -> Result<i32, Error> {
        match self.command {
            Command::List(list) => match &list.node {
                None => list.own(),
                Some(node) => list.of(node),
            },
            Command::Remove(Remove { pin, program }) => change_of(&program, &Change::Uninstall(pin)),
            Command::Add(Add { pin, program }) => change_of(&program, &Change::Install(pin)),
        }
    }
}

impl List {
    fn of(&self, node: &str) -> Result<i32, Error> {
        let known = node::shown(&self.daemon)?.nodes.into_iter().find(|known| known.node == node);
        let known =
            known.ok_or_else(|| Error::Daemon(format!("there is no node {node}; `outlast node list` shows all")))?;
        let row = |Offer { name, what, operations, events }| OfNode {
            name: outlast_interfaces::node::pin_of(node, &name),
            what,
            operations,
            events,
        };
        let rows: Vec<_> = known.offers.into_iter().map(row).collect();
        listing::print(self.json, &rows, ["PIN", "OPERATIONS", "EVENTS", "WHAT"], |row| {
            [row.name.clone(), names(&row.operations), names(&row.events), row.what.clone()]
        })
    }

    fn own(&self) -> Result<i32, Error> {
        let state = state::open()?;
        let running = status::all(&state)?.into_iter().filter(|program| program.ended.is_none() && program.protected);
        let run: Vec<String> = running.map(|program| program.name).collect();
        let folder = |name: &str| state.program(name).ok();
        let parts = |name: &String| Some((wishing::parts(&folder(name)?)?.pins, name.clone()));
        let loaded: Vec<(Vec<String>, String)> = run.iter().filter_map(parts).collect();
        let lacks = |name: &String| Some((Meta::read(&folder(name)?).ok()?.options.without_pins, name.clone()));
        let gone: Vec<(Vec<String>, String)> = run.iter().filter_map(lacks).collect();
        let of = |pin: &str| {
            let has = loaded.iter().filter(|(pins, _)| pins.iter().any(|loaded| loaded == pin));
            has.map(|(_, program)| program.clone()).collect()
        };
        let without = |pin: &str| {
            let has = gone.iter().filter(|(pins, _)| pins.iter().any(|gone| gone == pin));
            has.map(|(_, program)| program.clone()).collect()
        };
        let row = |pin: &Interface, missing| Row {
            name: pin.name,
            what: pin.what,
            operations: pin.operations.iter().map(|operation| operation.name).collect(),
            events: pin.events.iter().map(|event| event.name).collect(),
            programs: of(pin.name),
            uninstalled: without(pin.name),
            missing,
        };
        let there = PINS.iter().chain(&BETWEEN_NODES).chain(&OF_COMPONENTS).map(|pin| row(pin, None));
        let missing = MISSING.iter().map(|pin| row(&pin.interface, Some(pin.why)));
        let rows: Vec<_> = there.chain(missing).collect();
        listing::print(self.json, &rows, ["PIN", "LOADED FOR", "OPERATIONS", "EVENTS", "WHAT"], |row| {
            let what = row.missing.map_or(row.what.into(), |why| format!("{} ({why})", row.what));
            let what = match row.uninstalled.is_empty() {
                true => what,
                false => format!("{what} (uninstalled for {})", names(&row.uninstalled)),
            };
            [row.name.into(), names(&row.programs), names(&row.operations), names(&row.events), what]
        })
    }
}
