//! Several campaigns in one text: settings beside each other for every class of faults, first of all campaigns together.

use super::table::{self, Row};
use super::{gain, Report};
use crate::judge::Outcome;
use crate::record::{Experiment, Head};
use crate::strike::Place;

pub fn text(reports: &[Report]) -> String {
    let Some(first) = reports.first() else { return String::new() };
    let all: Vec<Experiment> = reports.iter().flat_map(|report| report.experiments.clone()).collect();
    let mut head = first.head.clone();
    head.settings = settings(reports);
    let faults: u32 = reports.iter().map(|report| report.head.count).sum();
    let mut text = format!("## All programs: {faults} faults in each setting\n\n{}", section(&head, &all));
    text += &gain::markdown(&gain::sum(reports.iter().flat_map(Report::gains)));
    for report in reports {
        let head = &report.head;
        text += &format!("\n## {}: {} faults, seed {}\n\n", head.name, head.count, head.seed);
        text += &section(head, &report.experiments);
        if !head.varying.is_empty() {
            text += &format!("\nNot compared, since unharmed runs differ there: {}.\n", head.varying.join(", "));
        }
    }
    text
}

/// Settings of all campaigns, in the order in which they first come.
fn settings(reports: &[Report]) -> Vec<String> {
    let mut settings: Vec<String> = Vec::new();
    for setting in reports.iter().flat_map(|report| &report.head.settings) {
        if !settings.contains(setting) {
            settings.push(setting.clone());
        }
    }
    settings
}

fn section(head: &Head, experiments: &[Experiment]) -> String {
    let rows = table::rows(head, experiments);
    let mut text = String::from(
        "| fault | setting | injected | activated | correct | of activated, 95 % interval | recovered | error | crash | hang | \
         went back | silent | gave up |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    let mut classes: Vec<_> = rows.iter().map(|row| row.kind).collect();
    // None, all classes, last.
    classes.sort_by_key(|kind| (kind.is_none(), *kind));
    classes.dedup();
    for class in classes {
        for row in rows.iter().filter(|row| row.kind == class) {
            text += &line(row);
        }
    }
    let struck = |place| experiments.iter().filter(|e| e.place == Some(place)).count();
    text += &format!(
        "\nStruck: the program's own state {} times, that of the engine in it {} times, a thread in a system call {} times, the \
         process as a whole {} times.\n",
        struck(Place::Program),
        struck(Place::Engine),
        struck(Place::Kernel),
        struck(Place::Process)
    );
    let impossible: usize = rows.iter().filter(|r| r.kind.is_none()).map(|r| r.of(Outcome::Impossible)).sum();
    if impossible > 0 {
        text += &format!("\nCould not be injected here: {impossible}.\n");
    }
    text
}

fn line(row: &Row) -> String {
    let share = match (row.correct, row.interval) {
        (Some(share), Some([low, high])) => {
            format!("{:.1} % ({:.1}–{:.1})", share * 100.0, low * 100.0, high * 100.0)
        }
        _ => "–".into(),
    };
    let outcome = |outcome| row.of(outcome).to_string();
    let cells = [
        row.class().into(),
        row.setting.clone(),
        row.injected.to_string(),
        row.activated().to_string(),
        outcome(Outcome::Correct),
        share,
        row.recovered.to_string(),
        outcome(Outcome::Error),
        outcome(Outcome::Crash),
        outcome(Outcome::Hang),
        outcome(Outcome::WentBack),
        outcome(Outcome::FailSilence),
        row.gave_up.to_string(),
    ];
    format!("| {} |\n", cells.join(" | "))
}
