//! `outlast pin`: the mechanisms that modules work with.

use crate::output::{self, columns};
use clap::{Args, Subcommand};
use outlast_interfaces::{MISSING, PINS};
use outlast_supervisor::Error;
use serde::Serialize;

/// Show the pins that modules work with
#[derive(Args)]
pub struct Pin {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    List(List),
}

/// List the pins with their operations and events, also those that are missing
#[derive(Args)]
pub struct List {
    /// One array of JSON objects
    #[arg(long)]
    json: bool,
}

/// A pin, as the list shows it.
#[derive(Serialize)]
struct Row {
    name: &'static str,
    what: &'static str,
    operations: Vec<&'static str>,
    events: Vec<&'static str>,
    /// Why it is not there; null: it is.
    missing: Option<&'static str>,
}

impl Pin {
    pub fn execute(self) -> Result<i32, Error> {
        let Command::List(List { json }) = self.command;
        let there = PINS.iter().map(|pin| Row {
            name: pin.name,
            what: pin.what,
            operations: pin.operations.iter().map(|operation| operation.name).collect(),
            events: pin.events.iter().map(|event| event.name).collect(),
            missing: None,
        });
        let missing = MISSING.iter().map(|pin| Row {
            name: pin.name,
            what: pin.what,
            operations: Vec::new(),
            events: Vec::new(),
            missing: Some(pin.why),
        });
        let rows: Vec<_> = there.chain(missing).collect();
        if json {
            return output::json(&rows);
        }
        let head = ["PIN", "OPERATIONS", "EVENTS", "WHAT"].map(String::from);
        let list = |names: &[&str]| if names.is_empty() { "-".into() } else { names.join(" ") };
        let cells = rows.iter().map(|row| {
            let what = row.missing.map_or(row.what.into(), |why| format!("{} ({why})", row.what));
            [row.name.into(), list(&row.operations), list(&row.events), what]
        });
        output::text(&columns(std::iter::once(head).chain(cells)))
    }
}
