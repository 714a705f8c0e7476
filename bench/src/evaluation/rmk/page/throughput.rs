//! Figure 9: a server under load.

use super::FIGURE_9;
use crate::evaluation::rmk::confidence::Mean;
use crate::evaluation::rmk::results::{Load, Results, Served};
use crate::evaluation::surroundings::in_words as surroundings;
use std::fmt::Write;

pub fn figure_9(results: &Results) -> String {
    let section = &results.loads;
    let mut text =
        format!("## Figure 9: throughput and response time\n\n{}\n", surroundings(section.surroundings.as_ref()));
    if section.entries.is_empty() {
        return text;
    }
    let _ = writeln!(text, "![Throughput and response time against clients]({FIGURE_9})\n");
    text += "The paper's figure is a picture; its text says that throughput does not depend on the number of clients, that response time grows with it, and 6.51 ± 0.04 for the baseline,
6.51 ± 0.07 with SHD (here `oshang`) and 6.47 ± 0.02 with AHD (`hang`), 0.6 % less.

| modules | clients | replies a second | of none, % | response time, µs: mean | median | 99 % | processor time a request, µs | errors |
|---|---|---|---|---|---|---|---|---|
";
    for load in &section.entries {
        text += &served(load, &section.entries[0]);
    }
    text.push('\n');
    for load in &section.entries {
        if let Some(obstacle) = &load.obstacle {
            let _ = writeln!(text, "- **{}: not all was measured: {obstacle}.**", load.modules);
        } else if load.modules != "none" && load.modules != "oshang" {
            let _ = writeln!(text, "- {}: {}.", load.modules, load.conditions);
        }
    }
    text
}

fn served(load: &Load, none: &Load) -> String {
    let mut text = String::new();
    for (point, base) in load.points.iter().zip(&none.points) {
        let of = |runs: &[Served], f: fn(&Served) -> f64| Mean::of(&runs.iter().map(f).collect::<Vec<_>>());
        let rate: fn(&Served) -> f64 = |run| run.requests / run.seconds;
        let (Some(ours), Some(theirs)) = (of(&point.runs, rate), of(&base.runs, rate)) else { continue };
        let text_of = |f, digits| of(&point.runs, f).map_or(String::new(), |mean| mean.text(digits));
        let _ = writeln!(
            text,
            "| {} | {} | {} | {:.0} | {} | {} | {} | {} | {:.0} |",
            load.modules,
            point.clients,
            ours.text(0),
            ours.mean / theirs.mean * 100.0,
            text_of(|run| run.mean_us, 0),
            text_of(|run| run.median_us, 0),
            text_of(|run| run.p99_us, 0),
            text_of(|run| run.processor_us, 2),
            point.runs.iter().map(|run| run.errors).sum::<f64>(),
        );
    }
    text
}
