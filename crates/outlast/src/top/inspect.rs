//! One program, in lines.

use super::figures::{bytes, micros, number};
use super::sample::{Row, Sampler};
use outlast_pins::Wishes;
use outlast_supervisor::meta::Meta;
use outlast_supervisor::say::printable;
use std::fs;
use std::time::Duration;

/// More threads are only counted.
const THREADS: usize = 12;

pub fn lines(row: &Row, sampler: &Sampler) -> Vec<String> {
    let status = &row.status;
    let or_dash = |text: String| if text.is_empty() { "-".into() } else { text };
    let pid = |pid: Option<i32>| pid.map_or("-".into(), |pid| pid.to_string());
    let mut lines = vec![
        format!("command      {}", status.command.join(" ")),
        format!("state        {}, started {}", row.state(), status.started),
        format!(
            "processes    program {}, anchor {}, supervisor {}",
            pid(status.pid),
            pid(status.anchor),
            pid(status.supervisor)
        ),
        format!(
            "commits      {}, {} pages in the last, {} written",
            status.commits,
            status.dirty_pages,
            bytes(status.log_bytes)
        ),
        format!("store        {} in {}", bytes(status.store_bytes), status.store),
        format!("calls        {}, faults found by {}", number(status.calls as f64), status.fault_source),
        format!(
            "recoveries   {}, {} in place, {} hangs, {} storms",
            status.recoveries, status.rollbacks, row.hangs, row.storms
        ),
        format!("not preserved  {}", or_dash(status.degradations.join(", "))),
    ];
    for (what, taken) in [("since exec", status.commit_us), ("since the last look", row.recent_commit_us)] {
        if let Some(taken) = taken {
            lines.push(format!(
                "a commit     {} half, {} all but 1 %, {what}",
                micros(taken.median),
                micros(taken.p99)
            ));
        }
    }
    let meta = sampler.state.program(&status.name).and_then(|folder| Meta::read(&folder));
    lines.extend(meta.into_iter().map(|meta| format!("options      {}", options(&meta))));
    lines.extend(status.pid.map(threads).into_iter().flatten());
    lines.push(String::new());
    lines.extend(sampler.entries(&status.name).map(|entry| format!("{}  {}", entry.time, entry.sentence())));
    lines.iter().map(|line| printable(line)).collect()
}

fn options(meta: &Meta) -> String {
    let options = &meta.options;
    let duration = |ns| humantime::format_duration(Duration::from_nanos(ns)).to_string();
    let said = [
        Some(format!("modules {}", Wishes::of(options).modules().join(" "))),
        Some(options.retries.map_or("not recovered".into(), |retries| format!("retries {retries}"))),
        (options.interval_ns > 0).then(|| format!("every {}", duration(options.interval_ns))),
        (options.lag_ns > 0).then(|| format!("durable within {}", duration(options.lag_ns))),
        options.generations.map(|policy| format!("generations every {}", duration(policy.every_ns))),
        options.storm.map(|storm| format!("storm {}:{}", storm.most, humantime::format_duration(storm.within))),
        options.leaks.map(|leaks| format!("leaks {}:{}", humantime::format_duration(leaks.window), leaks.percent)),
        options.alert.first().map(|program| format!("alert {program}")),
        options.journal.as_ref().map(|_| "journal".into()),
    ];
    said.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The kernel's threads of the process: their numbers, names and what they do.
fn threads(pid: i32) -> Vec<String> {
    let folder = format!("/proc/{pid}/task");
    let mut ids: Vec<i32> = fs::read_dir(&folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    ids.sort_unstable();
    let line = |id: &i32| {
        let stat = fs::read_to_string(format!("{folder}/{id}/stat")).ok()?;
        let (name, rest) = stat.split_once('(')?.1.rsplit_once(')')?;
        Some(format!("thread       {id} {} {name}", rest.split_ascii_whitespace().next()?))
    };
    let mut lines: Vec<_> = ids.iter().take(THREADS).filter_map(line).collect();
    if ids.len() > THREADS {
        lines.push(format!("             and {} more", ids.len() - THREADS));
    }
    lines
}
