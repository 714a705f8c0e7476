//! What was measured, and what follows from it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::crashes::{bins, dip, Crash, Dip, COMPONENTS};
use crate::load::Load;
use crate::servers::Server;

/// One server under load once.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    pub server: Server,
    /// That were answered, in the whole time.
    pub requests: u64,
    pub failed: u64,
    /// Requests in each tenth of a second.
    pub over_time: Vec<u64>,
    /// What is seen of each crash; in a server without crashes what is seen at the same moments.
    pub crashes: Vec<Moment>,
}

/// What is seen of a crash of a component.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Moment {
    pub component: String,
    #[serde(flatten)]
    pub dip: Dip,
}

impl Run {
    /// Of a load of that length; of each of these crashes counts what is seen for so long `after` it.
    pub fn new(server: Server, load: &Load, length: Duration, crashes: &[Crash], after: Duration) -> Self {
        let moment =
            |crash: &Crash| Moment { component: crash.component.to_string(), dip: dip(load, length, crash.at, after) };
        let crashes = crashes.iter().map(moment).collect();
        let (requests, over_time) = (load.done.len() as u64, bins(load, length));
        Self { server, requests, failed: load.failed, over_time, crashes }
    }
}

/// All runs of a server.
#[derive(Serialize)]
pub struct Measured {
    pub server: &'static str,
    /// Requests a second, each run's.
    pub throughput: Vec<f64>,
    pub mean: f64,
    /// Of a sample; 0 where there is but one.
    pub deviation: f64,
    /// Requests that got no answer, or a wrong one.
    pub failed: u64,
    /// Requests a second in each tenth of a second, on average over the runs.
    pub over_time: Vec<f64>,
    /// What crashes are seen by; in a server without crashes what is seen at the same moments.
    pub crashes: Vec<Seen>,
}

/// What is seen of the crashes of a component: medians over the runs.
#[derive(Serialize)]
pub struct Seen {
    pub component: &'static str,
    /// How many.
    pub count: usize,
    pub lowest: f64,
    pub seconds: f64,
    pub gap_seconds: f64,
    /// Of all of them.
    pub longest_gap_seconds: f64,
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.get(middle) {
        Some(high) if values.len() % 2 == 0 => (high + values[middle - 1]) / 2.0,
        high => high.copied().unwrap_or(0.0),
    }
}

pub fn measured(server: Server, runs: &[Run], length: Duration) -> Measured {
    let runs: Vec<&Run> = runs.iter().filter(|run| run.server == server).collect();
    let throughput: Vec<f64> = runs.iter().map(|run| run.requests as f64 / length.as_secs_f64()).collect();
    let count = throughput.len() as f64;
    let mean = throughput.iter().sum::<f64>() / count.max(1.0);
    let squares: f64 = throughput.iter().map(|one| (one - mean) * (one - mean)).sum();
    let deviation = if count > 1.0 { (squares / (count - 1.0)).sqrt() } else { 0.0 };
    let bin =
        |at: usize| runs.iter().filter_map(|run| run.over_time.get(at)).sum::<u64>() as f64 * 10.0 / count.max(1.0);
    let over_time = (0..runs.first().map_or(0, |run| run.over_time.len())).map(bin).collect();
    let seen = |component: &&'static str| {
        let these = runs.iter().flat_map(|run| &run.crashes).filter(|one| one.component == *component);
        let dips: Vec<&Dip> = these.map(|one| &one.dip).collect();
        let value = |of: fn(&Dip) -> f64| median(dips.iter().map(|dip| of(dip)).collect());
        let (lowest, seconds, gap_seconds) = (value(|dip| dip.lowest), value(|dip| dip.seconds), value(|dip| dip.gap));
        let longest_gap_seconds = dips.iter().map(|dip| dip.gap).fold(0.0, f64::max);
        Seen { component, count: dips.len(), lowest, seconds, gap_seconds, longest_gap_seconds }
    };
    let crashes = COMPONENTS.iter().map(seen).filter(|seen| seen.count > 0).collect();
    let failed = runs.iter().map(|run| run.failed).sum();
    Measured { server: server.name(), throughput, mean, deviation, failed, over_time, crashes }
}

/// As tables of a page.
pub fn tables(all: &[Measured]) -> String {
    let find = |server: Server| all.iter().find(|measured| measured.server == server.name());
    let base = find(Server::Base).map_or(&[][..], |base| &base.throughput);
    let mut text = "| server | requests a second | beyond base, run by run | failed |\n|---|---|---|---|\n".to_string();
    for one in all {
        // Whatever else the machine had to do it had to do to both of a run.
        let mut parts: Vec<f64> =
            one.throughput.iter().zip(base).map(|(one, base)| (one / base - 1.0) * 100.0).collect();
        parts.sort_by(f64::total_cmp);
        let parts = match (parts.first(), parts.last()) {
            (Some(low), Some(high)) => format!("{:+.1} % ({low:+.1} to {high:+.1})", median(parts.clone())),
            _ => "–".to_string(),
        };
        text.push_str(&format!(
            "| {} | {:.0} ± {:.0} | {parts} | {} |\n",
            one.server, one.mean, one.deviation, one.failed
        ));
    }
    for (crashes, without) in [(Server::HandCrashes, Server::Hand), (Server::Crashes, Server::Glue)] {
        let (Some(crashed), Some(quiet)) = (find(crashes), find(without)) else { continue };
        text.push_str(&format!("\n{}:\n", crashed.server));
        text.push_str(
            "\n| crash of | crashes | lowest tenth of a second | until as before | longest without an answer | of all |\n",
        );
        text.push_str("|---|---|---|---|---|---|\n");
        let row = |name: &str, seen: &[&Seen]| {
            let count: usize = seen.iter().map(|seen| seen.count).sum();
            let value = |of: fn(&Seen) -> f64| median(seen.iter().map(|seen| of(seen)).collect());
            let (lowest, seconds) = (value(|s| s.lowest) * 100.0, value(|s| s.seconds));
            let longest = seen.iter().map(|seen| seen.longest_gap_seconds).fold(0.0, f64::max) * 1e3;
            format!(
                "| {name} | {count} | {lowest:.0} % | {seconds:.1} s | {:.1} ms | {longest:.1} ms |\n",
                value(|s| s.gap_seconds) * 1e3
            )
        };
        for seen in &crashed.crashes {
            text.push_str(&row(seen.component, &[seen]));
        }
        text.push_str(&row("none (the same moments without crashes)", &quiet.crashes.iter().collect::<Vec<_>>()));
    }
    text
}
