//! The page for people: the paper's tables and figure, and ours beside them.

use super::super::page::surroundings;
use super::confidence::Mean;
use super::results::{Application, Approach, Injected, Load, Pages, Results, Round, Served, Unharmed, Work};
use crate::statistics::Summary;
use outlast_interfaces::{MISSING, PINS};
use std::fmt::Write;

/// Names of what is written.
pub const PAGE: &str = "rmk.md";
pub const DATA: &str = "rmk.json";
pub const FIGURE_9: &str = "rmk-figure-9.svg";

/// Markdown.
pub fn text(results: &Results) -> String {
    let parts = [
        head(results),
        lists(),
        table_7(results),
        table_8(results),
        figure_9(results),
        table_9(results),
        methods(results),
        OBSERVED.into(),
    ];
    parts.join("\n")
}

fn head(results: &Results) -> String {
    let Results { machine, outlast, seed, scale, .. } = results;
    let quick = if results.quick {
        "\n**A quick run: it shows that the measurements work, and nothing about their figures.**\n"
    } else {
        ""
    };
    format!(
        "\
# The evaluation of the Reliability MicroKernel, repeated with outlast

RMK (L. Wang, Z. Kalbarczyk, W. Gu and R. K. Iyer, *Reliability MicroKernel: Providing Application-Aware Reliability in the OS*) evaluates itself in its section
7. Here are its tables and its figure again as far as they are about programs, with outlast in its place. `make evaluation-rmk` measures all of it anew and writes this page; [{DATA}]({DATA})
has the figures of every single run.
{quick}
| | the paper | here |
|---|---|---|
| machine | Pentium 4, 1.5 GHz, Linux 2.6.11; clients on another one | {} × {}, {} MiB, Linux {}; clients on the other processor |
| system | a module of the kernel; Apache 2.0.55, gzip, ns2 | outlast {outlast}, no module of the kernel; lighttpd, gzip, ns-3; run by {}, nice {} |
| figures | means with 95 % confidence | the same; seed {seed}, numbers of faults, sessions and kills × {scale} |
",
        machine.processors,
        machine.processor,
        machine.memory_mib,
        machine.kernel,
        machine.user,
        machine.priority,
    )
}

fn lists() -> String {
    let mut text = String::from("## Tables 3 and 4, as lists\n\nPins of Table 3, and what each is for here:\n\n");
    for pin in PINS {
        let _ = writeln!(text, "- `{}`: {}", pin.name, pin.what);
    }
    for missing in MISSING {
        let _ = writeln!(text, "- `{}`: {}: {}", missing.name, missing.what, missing.why);
    }
    text + "
Outcomes of a fault, in place of Table 4:

- *no effect*: it did not come to its point, or nothing used what was harmed
- *correct*: clients got what they had asked for, with a recovery or without one
- *error*: a client was told of a failure, or the server ended otherwise than it should
- *crash*: the server was killed by a signal, in the end
- *hang*: nothing came any more until the time was over
- *went back*: it went on from an older generation, and clients saw that
- *silent*: clients got something else, and nobody was told
"
}

fn table_7(results: &Results) -> String {
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

/// Our program, the paper's, and what the paper's table has of it.
const PAPER_8: [(&str, &str, &str, &str); 3] = [
    ("gzip", "gzip", "111 (2, 83, 0, 21, 5, –) | 29 ± 6", "0.0083 | 34.4 | 1.01 | | – | 1.94 ± 0.16"),
    ("lighttpd", "Apache", "321 (7, 3, 203, 21, 87, –) | 32 ± 8", "0.0191 | 34.4 | 1.12 | | 1.75 ± 0.05 | 3.10 ± 0.15"),
    ("ns-3", "ns2", "1426 (158, 8, 1213, 21, 26, –) | 34 ± 6", "0.1182 | 34.4 | 1.29 | | – | 15.08 ± 0.10"),
];

fn table_8(results: &Results) -> String {
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

fn figure_9(results: &Results) -> String {
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

fn table_9(results: &Results) -> String {
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

fn methods(results: &Results) -> String {
    let detected = |setting: &str| results.injected.entries.iter().any(|one| one.setting == setting);
    let generations = if detected("generations") {
        "In the setting `generations` older states are kept every 50 ms as well: a damaged instruction that has been committed is damaged in every process that goes on from there, but
  not in a state from before.\n"
    } else {
        ""
    };
    format!(
        "\
## How it was measured, and what differs from the paper

- **The server** is lighttpd, one process with one thread that serves all connections: there is no child for each client as in Apache, so that a death concerns all clients.
- **Table 7.** Faults come when a function of the main loop is entered, between its 30th and its 600th time (`campaigns/web-flips.toml`, `web-hangs.toml`): a bit of code within 8 KiB, or a jump to itself. A campaign that is told of before its end has
  fewer faults than its file says. So near by there is much that is never executed; the paper's flips are in code that is. The client has 20 sessions of 50 small pages and a huge file, and compares a sum over each with that of an unharmed run. The limit is a second of processor
  time (`--hang=1s`), since a run is too short to learn anything. Sessions without faults are under a limit that is learnt, which takes some twelve seconds: a server has ten thousand of them, 17 s here. {generations}
- **Table 8.** `checkpoint` is alone (`--commit manual --every 2s`). Pages, what is written of them and c are counted inside the program, by a library that is loaded before it and arms all pages by `PAGEMAP_SCAN`, as the engine does;
  s + r is the slope of what commits cost between 256 and 4096 written pages. The server commits more often than every two seconds: what it reads from connections is kept until the next commit, in a room of bounded
  size, and descriptors that come and go are committed. A shadow process is a copy by `clone`, which replaces the one before; a dump copies all pages that are there into memory.
- **Figure 9.** wrk asks for pages of 0.5 to 16 KB on connections that stay open, in place of WebStone; the server has one processor and wrk the other. `hang`, `checkpoint` and `visible` have no other of these
  modules beside them; with `hang` nothing is committed but when it must be.
- **Table 9.** `checkpoint` goes back to the last commit, and what was sent since is sent again: a client may get a reply twice, which counts as wrong. The paper's custom checkpointing has no counterpart here yet.
"
    )
}

/// What these figures do not say themselves.
const OBSERVED: &str = "\
## What stands out

- **Hangs** are all found but a few that had not computed for a second when the time was over. On a machine with a load above ten some runs (58 of 1206)
  were recovered in milliseconds and still not over half a minute after the fault; of the first 640, with less load, none. Why is not known.
- **Damaged code** is committed with everything else: protected by commits alone, nearly every crash comes again until all tries are used up. Older generations
  take most crashes away, and a server's clients gain nothing by that: it knows nothing any more of what it has read and answered since, and they wait for a reply that does not come.
- **A server under `visible`** pays two to five times its own processor time, since each small reply has a commit before it. `checkpoint` pays a third more and answers twice after a
  death. Between the two is what the paper's custom checkpointing does.
- **A restart** of lighttpd is as quick as a recovery. What it costs are all connections.
";

#[cfg(test)]
pub use tests::example;

#[cfg(test)]
mod tests {
    use super::super::super::results::Section;
    use super::super::results::Point;
    use super::*;
    use crate::machine::Machine;

    /// Figures that can be computed by hand.
    pub fn example() -> Results {
        let all = |entries| Section { surroundings: None, entries };
        let work = |processor_ms| Work { elapsed_ms: 4000.0, processor_ms, units: 1.0 };
        let round = Round {
            native: work(4000.0),
            protected: work(4004.0),
            shadow: work(4040.0),
            dump: work(4080.0),
            commits: 2,
            log_bytes: 8192,
            shadow_ms: vec![1.5],
            dump_ms: vec![3.5],
            armed_ms: vec![0.01],
            present: vec![[1, 2, 3, 4, 5, 6]],
            written: vec![[0, 0, 10, 0, 0, 0]],
            a_page_us: 2.0,
        };
        let served = |requests| Served { requests, seconds: 2.0, mean_us: 100.0, ..Served::default() };
        let load = |modules: &str, requests| Load {
            modules: modules.into(),
            points: vec![Point { clients: 20, runs: vec![served(requests)] }],
            ..Load::default()
        };
        Results {
            outlast: "0".into(),
            machine: Machine {
                kernel: "6".into(),
                processor: "one".into(),
                processors: 2,
                memory_mib: 1024,
                load: 0.0,
                user: "root".into(),
                priority: 0,
            },
            seed: 1,
            quick: false,
            scale: 1.0,
            injected: all(vec![Injected {
                campaign: "web-hangs".into(),
                setting: "hang".into(),
                seed: 12,
                count: 10,
                struck: 9,
                correct: 8,
                hang: 1,
                detected: 8,
                recovered: 8,
                latencies_ms: vec![1000.0, 2000.0],
                ..Injected::default()
            }]),
            unharmed: Section {
                surroundings: None,
                entries: vec![Unharmed { seed: 1, sessions: 40, small: 50, ..Unharmed::default() }],
            },
            applications: Section {
                surroundings: None,
                entries: vec![Application {
                    name: "gzip".into(),
                    interval_ms: 2000,
                    rounds: vec![round],
                    ..Application::default()
                }],
            },
            approaches: Section {
                surroundings: None,
                entries: vec![Approach {
                    name: "visible".into(),
                    recoveries_ms: vec![1.0, 3.0],
                    pairs_us: vec![[10.0, 15.0]],
                    ..Approach::default()
                }],
            },
            loads: Section { surroundings: None, entries: vec![load("none", 200.0), load("visible", 100.0)] },
        }
    }

    #[test]
    fn the_page_has_the_papers_figures_beside_ours() {
        let page = text(&example());
        for line in [
            "| web-hangs, seed 12 | hang | 10 | 1 | 8 | 0 | 0 | 1 | 0 | 0 | 8 | 8 | 0 | 1000/2000/2000 |",
            "| gzip, the paper | 111 (2, 83, 0, 21, 5, –) | 29 ± 6 | 0.0083 | 34.4 | 1.01 | | – | 1.94 ± 0.16 |",
            "| **gzip**, outlast | 21 (1, 2, 3, 4, 5, 6) | 10 | 0.0100 | 2.00 | 0.030 | 2.00 (0.10 %) | 1.50 | 3.50 |",
            "| gzip | 0.10 | 1.00 | 2.00 | 1.0 | 4 |",
            "| visible | 20 | 50 | 50 | 100 |",
            "| **visible** |  | 50.0 % | 2.00 ± 12.71 | 2.00 | 1.50 to 2.50 | 2 | 0 | 0 |",
            "| `hang`, learnt | 40 | 1 | 0 | 0 |",
        ] {
            assert!(page.contains(line), "{line}\n{page}");
        }
    }

    #[test]
    fn what_was_not_measured_is_said() {
        let mut results = example();
        results.approaches.entries[0].obstacle = Some("no server".into());
        results.loads.entries.clear();
        let page = text(&results);
        assert!(page.contains("Not all was measured: no server"), "{page}");
    }

    #[test]
    fn results_are_read_back_as_they_were_written() {
        let text = serde_json::to_string(&example()).unwrap();
        let again: Results = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&again).unwrap(), text);
    }
}
