//! `outlast pin`: the mechanisms that modules work with.

use crate::listing::{names, Listing};
use crate::state;
use clap::Args;
use outlast_interfaces::{MISSING, PINS};
use outlast_supervisor::{status, wishing, Error};
use serde::Serialize;

/// Show the pins that modules work with, their operations and events, also of those that are missing
#[derive(Args)]
pub struct Pin {
    #[command(subcommand)]
    command: Listing,
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
    /// Why it is not there; null: it is.
    missing: Option<&'static str>,
}

impl Pin {
    pub fn execute(self) -> Result<i32, Error> {
        let state = state::open()?;
        let running = status::all(&state)?.into_iter().filter(|program| program.ended.is_none() && program.protected);
        let parts = |name: String| Some((wishing::parts(&state.program(&name).ok()?)?.pins, name));
        let loaded: Vec<(Vec<String>, String)> = running.filter_map(|program| parts(program.name)).collect();
        let of = |pin: &str| {
            let has = loaded.iter().filter(|(pins, _)| pins.iter().any(|loaded| loaded == pin));
            has.map(|(_, program)| program.clone()).collect()
        };
        let there = PINS.iter().map(|pin| Row {
            name: pin.name,
            what: pin.what,
            operations: pin.operations.iter().map(|operation| operation.name).collect(),
            events: pin.events.iter().map(|event| event.name).collect(),
            programs: of(pin.name),
            missing: None,
        });
        let missing = MISSING.iter().map(|pin| Row {
            name: pin.name,
            what: pin.what,
            operations: Vec::new(),
            events: Vec::new(),
            programs: Vec::new(),
            missing: Some(pin.why),
        });
        let rows: Vec<_> = there.chain(missing).collect();
        self.command.print(&rows, ["PIN", "LOADED FOR", "OPERATIONS", "EVENTS", "WHAT"], |row| {
            let what = row.missing.map_or(row.what.into(), |why| format!("{} ({why})", row.what));
            [row.name.into(), names(&row.programs), names(&row.operations), names(&row.events), what]
        })
    }
}
