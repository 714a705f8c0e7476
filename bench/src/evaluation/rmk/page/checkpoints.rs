//! Table 8: programs under checkpoints at intervals.

use crate::evaluation::rmk::confidence::Mean;
use crate::evaluation::rmk::results::{Application, Pages, Results, Round, Work};
use crate::evaluation::surroundings::in_words as surroundings;
use std::fmt::Write;

/// Our program, the paper's, and what the paper's table has of it.
const PAPER_8: [(&str, &str, &str, &str); 3] = [
    ("gzip", "gzip", "111 (2, 83, 0, 21, 5, –) | 29 ± 6", "0.0083 | 34.4 | 1.01 | | – | 1.94 ± 0.16"),
    ("lighttpd", "Apache", "321 (7, 3, 203, 21, 87, –) | 32 ± 8", "0.0191 | 34.4 | 1.12 | | 1.75 ± 0.05 | 3.10 ± 0.15"),
    ("ns-3", "ns2", "1426 (158, 8, 1213, 21, 26, –) | 34 ± 6", "0.1182 | 34.4 | 1.29 | | – | 15.08 ± 0.10"),
];

pub fn table_8(results: &Results) -> String {
    let section = &results.applications;
    let mut text = format!(
        "## Table 8: what checkpoints cost in an interval\n\n{}\n",
        surroundings(section.surroundings.as_ref())
    );
    if section.entries.is_empty() {
        return text;
    }
    text += "\
| program | pages there (data, bss, heap, stack, libraries, other) | written in an interval | c, ms | s + r, µs | c + (s + r) p, ms | processor time added, ms | a shadow process, ms | a dump, ms |
|---|---|---|---|---|---|---|---|---|
";
    for application in &section.entries {
        if let Some((_, name, pages, costs)) = PAPER_8.iter().find(|row| row.0 == application.name) {
            let _ = writeln!(text, "| {name}, the paper | {pages} | {costs} |");
        }
        text += &checkpoints(application);
    }
    text += "
c is the time in which all pages are armed, s + r what each page costs that is written: its fault, its copy, being armed again. The time added is measured, in whole runs beside
native ones, for each interval, and in % of it; a shadow process and a dump are what one such checkpoint takes, while the program waits.

| program | added by `checkpoint`, % of processor time | by shadow processes, % | by dumps, % | commits in an interval | log, KiB in an interval |
|---|---|---|---|---|---|
";
    for application in section.entries.iter().filter(|application| !application.rounds.is_empty()) {
        let share = |of: fn(&Round) -> &Work| {
            mean(application, |round| (a_unit(of(round)) / a_unit(&round.native) - 1.0) * 100.0)
        };
        let interval = |of: fn(&Round) -> f64| {
            mean(application, |round| of(round) / intervals(&round.protected, application.interval_ms))
        };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} |",
            application.name,
            share(|round| &round.protected).text(2),
            share(|round| &round.shadow).text(2),
            share(|round| &round.dump).text(2),
            interval(|round| round.commits as f64).text(1),
            interval(|round| round.log_bytes as f64 / 1024.0).text(0),
        );
    }
    text.push('\n');
    for Application { name, what, interval_ms, rounds, obstacle, conditions } in &section.entries {
        let _ = write!(text, "- **{name}**: {what}; {} rounds, every {interval_ms} ms. {conditions}.", rounds.len());
        if let Some(obstacle) = obstacle {
            let _ = write!(text, " **Not all was measured: {obstacle}.**");
        }
        text.push('\n');
    }
    text
}

fn a_unit(work: &Work) -> f64 {
    work.processor_ms / work.units
}

fn intervals(work: &Work, interval_ms: u64) -> f64 {
    work.elapsed_ms / interval_ms as f64
}

fn mean(application: &Application, of: impl Fn(&Round) -> f64) -> Mean {
    let values: Vec<f64> = application.rounds.iter().map(of).collect();
    Mean::of(&values).unwrap_or(Mean { mean: f64::NAN, within: f64::NAN, runs: 1 })
}

/// Over all checkpoints of all rounds.
fn each(application: &Application, of: impl Fn(&Round) -> Vec<f64>) -> Mean {
    let values: Vec<f64> = application.rounds.iter().flat_map(of).collect();
    Mean::of(&values).unwrap_or(Mean { mean: f64::NAN, within: f64::NAN, runs: 1 })
}

fn checkpoints(application: &Application) -> String {
    let name = &application.name;
    if application.rounds.is_empty() {
        return format!("| **{name}**, outlast | not measured | | | | | | | |\n");
    }
    let total = |pages: &Vec<Pages>| pages.iter().map(|kinds| f64::from(kinds.iter().sum::<u32>())).collect();
    let there = each(application, |round| total(&round.present));
    let written = each(application, |round| total(&round.written));
    let kinds: Vec<String> = (0..6)
        .map(|kind| {
            let one = each(application, |round| round.present.iter().map(|pages| f64::from(pages[kind])).collect());
            format!("{:.0}", one.mean)
        })
        .collect();
    let armed = each(application, |round| round.armed_ms.clone());
    let a_page = mean(application, |round| round.a_page_us);
    let added = mean(application, |round| {
        let units = round.native.units / intervals(&round.native, application.interval_ms);
        (a_unit(&round.protected) - a_unit(&round.native)) * units
    });
    format!(
        "| **{name}**, outlast | {:.0} ({}) | {} | {} | {} | {:.3} | {} ({:.2} %) | {} | {} |\n",
        there.mean,
        kinds.join(", "),
        written.text(0),
        armed.text(4),
        a_page.text(2),
        armed.mean + a_page.mean * written.mean / 1e3,
        added.text(2),
        added.mean / application.interval_ms as f64 * 100.0,
        each(application, |round| round.shadow_ms.clone()).text(2),
        each(application, |round| round.dump_ms.clone()).text(2),
    )
}
