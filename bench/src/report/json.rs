//! One JSON object: the machine, and every promise with its figures.

use crate::machine::Machine;
use crate::promise::Report;
use serde::Serialize;

#[derive(Serialize)]
struct Document<'a> {
    machine: &'a Machine,
    promises: &'a [Report],
}

/// The whole report as text.
pub fn text(machine: &Machine, reports: &[Report]) -> serde_json::Result<String> {
    serde_json::to_string_pretty(&Document { machine, promises: reports })
}
