//! Table 9: a server that dies.

use crate::evaluation::rmk::confidence::Mean;
use crate::evaluation::rmk::results::{Approach, Results};
use crate::evaluation::surroundings::in_words as surroundings;
use crate::statistics::Summary;
use std::fmt::Write;

pub fn table_9(results: &Results) -> String {
    let section = &results.approaches;
    let mut text = format!("## Table 9: a server that dies\n\n{}\n", surroundings(section.surroundings.as_ref()));
    if section.entries.is_empty() {
        return text;
    }
    text += "\
| approach | what | overhead | recovery, ms | median | quartiles | kills | connections broken | wrong replies |
|---|---|---|---|---|---|---|---|---|
| the paper: simple restart | | – | 42.02 ± 0.13 | | | | all | |
| the paper: memory dump | | 3.10 ± 0.15 ms every 2 s | 4.05 ± 0.08 | | | | | |
| the paper: custom checkpointing | | not measurable | around 4 | | | | 0 | |
";
    for approach in &section.entries {
        text += &died(approach);
    }
    for approach in section.entries.iter().filter(|approach| !approach.breaks.is_empty()) {
        let _ = writeln!(text, "\nConnections broke with `{}`: {}.", approach.name, approach.breaks.join("; "));
    }
    text + "
Overhead is processor time of a request. Recovery is from the kill to the next correct reply, seen by a client that has one connection, or opens it anew; every other time
a request is on its way when the server dies. A reply is wrong if it is not, byte by byte, what was asked for.
"
}

fn died(approach: &Approach) -> String {
    let Approach { name, what, recoveries_ms, broken, wrong, pairs_us, obstacle, .. } = approach;
    let overhead: Vec<f64> = pairs_us.iter().map(|[native, ours]| (ours / native - 1.0) * 100.0).collect();
    let overhead = Mean::of(&overhead).map_or("–".into(), |mean| format!("{} %", mean.text(1)));
    let recovery = Mean::of(recoveries_ms).map_or("–".into(), |mean| mean.text(2));
    let [median, quartiles] = Summary::of(recoveries_ms).map_or([const { String::new() }; 2], |summary| {
        let [low, high] = summary.quartiles;
        [format!("{:.2}", summary.median), format!("{low:.2} to {high:.2}")]
    });
    let said = obstacle.as_ref().map_or(String::new(), |obstacle| format!(". **Not all was measured: {obstacle}**"));
    format!(
        "| **{name}** | {what}{said} | {overhead} | {recovery} | {median} | {quartiles} | {} | {broken} | {wrong} |\n",
        recoveries_ms.len()
    )
}
