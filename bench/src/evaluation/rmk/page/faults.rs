//! Table 7: faults in a server's main loop, and sessions without any.

use crate::evaluation::rmk::results::{Injected, Results, Unharmed};
use crate::evaluation::surroundings::in_words as surroundings;
use std::fmt::Write;

pub fn table_7(results: &Results) -> String {
    let mut text = format!(
        "## Table 7: faults in the main loop of an HTTP server\n\n{}\n",
        surroundings(results.injected.surroundings.as_ref())
    );
    text += "\
| campaign | setting | faults | no effect | correct | error | crash | hang | went back | silent | detected | recovered | gave up | detected after, ms (50/90/99 %) |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|
| the paper, 1: a bit flip | RMK | 1861 | | | | 1854 | 7 | | | 7 hangs | | | |
| the paper, 2: a hang | RMK | 1206 | | | | 0 | 1206 | | | 1206 hangs | | | |
";
    for one in &results.injected.entries {
        text += &injected(one);
    }
    let _ = writeln!(
        text,
        "\nThe paper's 3rd campaign has no faults: 2000 experiments, of which one, a very large file after small ones, was taken for a hang. Here:\n\n{}",
        surroundings(results.unharmed.surroundings.as_ref())
    );
    if !results.unharmed.entries.is_empty() {
        text += &unharmed(&results.unharmed.entries);
    }
    text
}

fn injected(one: &Injected) -> String {
    if let Some(obstacle) = &one.obstacle {
        return format!("| {}: not all was measured: {obstacle} | | | | | | | | | | | | | |\n", one.campaign);
    }
    let no_effect = one.count - one.correct - one.error - one.crash - one.hang - one.went_back - one.silent;
    let native = one.setting == "native";
    let of_log = |number: usize| if native { "–".into() } else { number.to_string() };
    format!(
        "| {}, seed {} | {} | {} | {no_effect} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
        one.campaign,
        one.seed,
        one.setting,
        one.count,
        one.correct,
        one.error,
        one.crash,
        one.hang,
        one.went_back,
        one.silent,
        of_log(one.detected),
        of_log(one.recovered),
        of_log(one.gave_up),
        percentiles(&one.latencies_ms),
    )
}

/// Median, 90 % and 99 %.
fn percentiles(values: &[f64]) -> String {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |share: f64| sorted.get((((sorted.len() as f64) * share).ceil() as usize).saturating_sub(1));
    match (at(0.5), at(0.9), at(0.99)) {
        (Some(median), Some(most), Some(last)) => format!("{median:.0}/{most:.0}/{last:.0}"),
        _ => "–".into(),
    }
}

fn unharmed(all: &[Unharmed]) -> String {
    let sum = |of: &dyn Fn(&Unharmed) -> usize| all.iter().map(of).sum::<usize>();
    let sessions = sum(&|one| one.sessions);
    let mut text = format!(
        "| | sessions | servers | false alarms | sessions that got something else |\n|---|---|---|---|---|\n\
         | the paper | 2000 | | 1 | |\n| `hang`, learnt | {sessions} | {} | {} | {} |\n\n\
         A session is {} small pages and then a huge file; {:.0} s in all, seeds {} to {}.\n",
        all.len(),
        sum(&|one| one.false_alarms),
        sum(&|one| one.different),
        all[0].small,
        all.iter().map(|one| one.seconds).sum::<f64>(),
        all[0].seed,
        all[all.len() - 1].seed,
    );
    for obstacle in all.iter().filter_map(|one| one.obstacle.as_ref()) {
        let _ = writeln!(text, "\n**Not all was measured: {obstacle}.**");
    }
    text
}
