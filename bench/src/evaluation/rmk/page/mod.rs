//! The page for people: the paper's tables and figure, and ours beside them.

mod checkpoints;
mod deaths;
mod faults;
mod throughput;

use super::results::Results;
use crate::evaluation::report::Origin;
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
        faults::table_7(results),
        checkpoints::table_8(results),
        throughput::figure_9(results),
        deaths::table_9(results),
        methods(results),
        OBSERVED.into(),
    ];
    parts.join("\n")
}

fn head(results: &Results) -> String {
    let Results { origin, scale, .. } = results;
    let Origin { machine, outlast, seed, .. } = origin;
    let quick = results.origin.warning();
    format!(
        "\
# The evaluation of the Reliability MicroKernel, repeated with outlast

RMK (L. Wang, Z. Kalbarczyk, W. Gu and R. K. Iyer, *Reliability MicroKernel: Providing Application-Aware Reliability in the OS*) evaluates itself in its section
7. Here are its tables and its figure again as far as they are about programs, with outlast in its place. `make evaluation-rmk` measures all of it anew and writes this page; [{DATA}]({DATA})
has the figures of every single run.
{quick}
| | the paper | here |
|---|---|---|
| machine | Pentium 4, 1.5 GHz, Linux 2.6.11; clients on another one | {} × {}, {} MiB, Linux {}, of what was measured last: each table says its own; clients on the other processor |
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
        let _ = writeln!(text, "- `{}`: {}: {}", missing.interface.name, missing.interface.what, missing.why);
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
  modules beside them, `server` has `visible`; with `hang` nothing is committed but when it must be.
- **Table 9.** `checkpoint` goes back to the last commit, and what was sent since is sent again: a client may get a reply twice, which counts as wrong. A memory
  dump is a library's that is loaded before the server: what the kernel has of it, what was read from connections among it, stays as it is, but for
  connections that were not there when the memory was copied: they are closed. A request that was read since is lost, and
  counts as wrong when nothing has come for 250 ms. Overhead is that of turns of one second, of this server and of an unprotected one, both of which are there all the time. `server` is the paper's custom checkpointing,
  with other commits: not two in all, but one in 64 reads, before what is no reply, and when connections begin and end, so that a recovery has little to do again.
"
    )
}

/// What these figures do not say themselves.
const OBSERVED: &str = "\
## What stands out

- **Hangs** are found after a second of processor time of the thread; the rest of what is told above is waiting for a processor. What is not found had not computed for a second when the time was over.
- **Damaged code** is committed with everything else: protected by commits alone, nearly every crash comes again until all tries are used up. Older generations
  take the crashes away and the server lives on, but it knows nothing any more of what it has read and answered since: its connections end, which a client without a second try counts as an error.
- **A server under `visible`** pays two to five times its own processor time, since each small reply has a commit before it. `checkpoint` pays a third more and answers twice after a
  death. `server`, the paper's custom checkpointing, is between the two, and answers once; it is for servers that reply the same when they read the same again.
- **A restart** of lighttpd is as quick as a recovery. What it costs are all connections.
";

#[cfg(test)]
mod tests {
    use super::super::example::example;
    use super::*;

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
