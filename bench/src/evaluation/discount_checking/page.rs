//! The page for people: the paper's tables and figures, and ours beside them.

use super::figures::size;
use super::judgement;
use super::paper::{self, TABLE_2};
use super::results::{Application, Computation, Results, Sweep};
use super::summary::{ApplicationSummary, IntervalSummary};
use crate::evaluation::report::Origin;
use crate::evaluation::surroundings::in_words as surroundings;
use crate::statistics::Summary;
use std::fmt::Write;

/// Names of what is beside the page.
pub const DATA: &str = "discount-checking.json";
pub const FIGURE_2: &str = "discount-checking-figure-2.svg";
pub const FIGURE_3: &str = "discount-checking-figure-3.svg";

/// Markdown. `{:.1}` and the like are chosen as the paper's tables have them.
pub fn text(results: &Results) -> String {
    let parts =
        [head(results), table_2(results), figure_2(results), figure_3(results), worse(results), methods(results)];
    parts.join("\n")
}

fn head(results: &Results) -> String {
    let Results { origin, applications, commits, computations } = results;
    let Origin { machine, outlast, seed, .. } = origin;
    let sections = [&applications.surroundings, &commits.surroundings, &computations.surroundings];
    let took: f64 = sections.into_iter().flatten().map(|surroundings| surroundings.took).sum();
    let quick = results.origin.warning();
    format!(
        "\
# The evaluation of Discount Checking, repeated with outlast

Discount Checking (D. E. Lowell and P. M. Chen, University of Michigan, 1998) evaluates itself in its section 5 by a table and two
figures. Here they are again, with outlast in its place and native runs beside it. `make evaluation` measures all of it anew and
writes this page; [{DATA}]({DATA}) has the figures of every single run.
{quick}
| | the paper | here |
|---|---|---|
| machine | {} | {} × {}, {} MiB, Linux {} |
| system | linked into the program, which says so in its source | outlast {outlast}, nothing changed; run by {}, nice {} |
| figures | the middle three of five runs, in the mean; deviation < 1 % | medians of pairs, native and protected, with quartiles; seed {seed}; {:.0} minutes in all |

The machines are a quarter of a century apart, so that shares compare better than times do.
",
        paper::MACHINE,
        machine.processors,
        machine.processor,
        machine.memory_mib,
        machine.kernel,
        machine.user,
        machine.priority,
        took / 60.0,
    )
}

/// Median, and quartiles if there are several runs.
fn spread(summary: &Summary, digits: usize) -> String {
    match summary.runs {
        1 => format!("{:.digits$}", summary.median),
        _ => format!(
            "{:.digits$} ({:.digits$} to {:.digits$})",
            summary.median, summary.quartiles[0], summary.quartiles[1]
        ),
    }
}

fn table_2(results: &Results) -> String {
    let mut text = format!(
        "## Table 2: programs that wait for a person\n\n{}\n",
        surroundings(results.applications.surroundings.as_ref())
    );
    if results.applications.entries.is_empty() {
        return text;
    }
    text += "\
| program | original, s | protected, s | overhead, % | checkpoints | log in the mean, KB | largest, KB |
|---|---|---|---|---|---|---|
";
    for row in &TABLE_2 {
        let paper::Row { name, kind, original_s, checked_s, overhead, checkpoints, average_kb, largest_kb, ours } = row;
        let _ = writeln!(
            text,
            "| {name} ({kind}), the paper | {original_s:.2} | {checked_s:.2} | {overhead:.1} | {checkpoints} | {average_kb} | {largest_kb} |"
        );
        let Some(application) = results.applications.entries.iter().find(|application| application.name == *ours)
        else {
            continue;
        };
        text += &match application.summary() {
            None => format!(
                "| **{ours}**, outlast | not measured: {} | | | | | |\n",
                application.obstacle.as_deref().unwrap_or("")
            ),
            Some(s) => format!(
                "| **{ours}**, outlast | {:.2} | {:.2} | {} | {:.0} | {:.1} | {:.0} |\n",
                s.native_s.median,
                s.protected_s.median,
                spread(&s.overhead, 2),
                s.commits.median,
                s.log_average / 1024.0,
                s.log.largest as f64 / 1024.0
            ),
        };
    }
    text += "
Where the time of a key or command goes, in the mean; µs, and % of the session's length:

| program | median answer: native | protected | processor time: native | program protected | watchers | more, % of the session | commits | trapped calls |
|---|---|---|---|---|---|---|---|---|
";
    for application in &results.applications.entries {
        if let Some(summary) = application.summary() {
            text += &key(application, &summary);
        }
    }
    text + &notes(
        results
            .applications
            .entries
            .iter()
            .map(|a| (&*a.name, &a.obstacle, a.rounds.len(), &*a.session, &*a.conditions)),
    )
}

fn key(application: &Application, summary: &ApplicationSummary) -> String {
    let ApplicationSummary { native_response, protected_response, a_key, processor, .. } = summary;
    format!(
        "| {} | {:.0} | {:.0} | {:.0} | {:.0} | {:.0} | {} | {:.2} | {:.2} |\n",
        application.name,
        native_response.median,
        protected_response.median,
        a_key.native_us,
        a_key.program_us,
        a_key.watchers_us,
        spread(processor, 3),
        a_key.commits,
        a_key.trapped
    )
}

/// What was done, under which circumstances, and what came in between.
fn notes<'a>(all: impl Iterator<Item = (&'a str, &'a Option<String>, usize, &'a str, &'a str)>) -> String {
    let mut text = String::from("\n");
    for (name, obstacle, rounds, what, conditions) in all {
        let _ = write!(text, "- **{name}**: {what}; {rounds} pairs of runs. {conditions}.");
        if let Some(obstacle) = obstacle {
            let _ = write!(text, " **Not all was measured: {obstacle}.**");
        }
        text.push('\n');
    }
    text
}

fn figure_2(results: &Results) -> String {
    let section = &results.commits;
    let mut text = format!(
        "## Figure 2: a commit after so many bytes were touched\n\n{}\n",
        surroundings(section.surroundings.as_ref())
    );
    let Some(first) = section.entries.first() else { return text };
    let _ = writeln!(text, "![Added time against bytes touched]({FIGURE_2})\n");
    text += "µs that protection adds to a turn, which touches the bytes and writes one byte that others see; medians and quartiles of pairs.\n\n";
    let heads: Vec<_> = section.entries.iter().map(|sweep| format!(" {} |", sweep.pattern.describe())).collect();
    let _ = writeln!(text, "| bytes touched | the paper |{} paper ÷ ours |", heads.concat());
    let _ = writeln!(text, "|---|---|{}---|", "---|".repeat(section.entries.len()));
    for (i, point) in first.points.iter().enumerate() {
        let theirs = paper::checkpoint_us(point.bytes);
        let ours = |sweep: &Sweep| sweep.points.get(i)?.added_us();
        let cells: Vec<_> = section
            .entries
            .iter()
            .map(|sweep| {
                ours(sweep)
                    .map_or(" – |".into(), |s| format!(" {} |", spread(&s, if s.median < 100.0 { 2 } else { 0 })))
            })
            .collect();
        let ratio =
            ours(first).filter(|s| s.median > 0.0).map_or("–".into(), |s| format!("{:.0}", theirs / s.median));
        let stated = paper::STATED_POINTS.iter().find(|(bytes, _)| *bytes == point.bytes);
        let theirs = stated.map_or(format!("({theirs:.0})"), |(_, stated)| format!("{stated:.0}"));
        let _ = writeln!(text, "| {} | {theirs} |{} {ratio} |", size(point.bytes), cells.concat());
    }
    text += "
The paper's figure is a picture, its text gives two points and two slopes: 50 µs for 4 KB, 12 ms for 1 MB, 32 µs a page as long as all
fits into the second cache, 45 µs beyond; what follows from the slopes is in brackets. \"Paper ÷ ours\" is for the first column of ours, which does
what the paper's program does. Up to 512 pages that change again and again stay writable and are compared with a copy at each commit;
beyond that, and when they come for the first time after long, each page costs a page fault, its copy, and being armed again.
";
    text + &notes(section.entries.iter().map(|s| {
        (
            s.pattern.describe(),
            &s.obstacle,
            s.points.iter().map(|p| p.pairs.len()).min().unwrap_or(0),
            "each size",
            &*s.conditions,
        )
    }))
}

fn figure_3(results: &Results) -> String {
    let section = &results.computations;
    let mut text = format!(
        "## Figure 3: computations that commit at intervals\n\n{}\n",
        surroundings(section.surroundings.as_ref())
    );
    if section.entries.is_empty() {
        return text;
    }
    let _ = writeln!(text, "![Overhead and log against the interval]({FIGURE_3})\n");
    let [low, high] = paper::EVERY_SECOND;
    let _ = writeln!(
        text,
        "The paper's curves are pictures, too; its text says {low} to {high} % for ijpeg and m88ksim with a checkpoint every second, and 0 to {high} % for
others of SPEC CINT95. Overhead is that of elapsed and of processor time, in % of the native run beside it.\n"
    );
    for computation in &section.entries {
        text += &intervals(computation);
    }
    text + &notes(section.entries.iter().map(|c| (&*c.name, &c.obstacle, c.rounds.len(), &*c.what, &*c.conditions)))
}

fn intervals(computation: &Computation) -> String {
    let Some([elapsed, processor]) = computation.native() else { return String::new() };
    let theirs = paper::FIGURE_3.iter().find(|(_, ours)| *ours == computation.name).map_or("", |(name, _)| name);
    let mut text = format!(
        "**{}**, for {theirs}: native {:.2} s, {:.2} s of processor time.\n
| interval, ms | the paper, % | elapsed, % | processor, % | commits | log in the mean, KB | largest, KB | µs a logged page |
|---|---|---|---|---|---|---|---|
",
        computation.name,
        elapsed.median / 1e3,
        processor.median / 1e3
    );
    for at in computation.summaries() {
        let IntervalSummary { interval_ms, elapsed, processor, commits, log_average, log_largest, a_page_us } = at;
        let [low, high] = paper::EVERY_SECOND;
        let theirs = if interval_ms == 1000 { format!("{low} to {high}") } else { "–".into() };
        let _ = writeln!(
            text,
            "| {interval_ms} | {theirs} | {} | {} | {:.0} | {:.0} | {:.0} | {} |",
            spread(&elapsed, 1),
            spread(&processor, 1),
            commits.median,
            log_average.median / 1024.0,
            log_largest.median / 1024.0,
            a_page_us.map_or("–".into(), |s| format!("{:.2}", s.median))
        );
    }
    text + "\n"
}

fn worse(results: &Results) -> String {
    let lines = judgement::worse(results);
    let list = match lines.is_empty() {
        true => "Nothing of what was measured.\n".into(),
        false => lines.iter().map(|line| format!("- {line}\n")).collect::<String>(),
    };
    format!("## Where ours is worse than the paper's, or than SPECIFICATION.md\n\n{list}\n{WHERE_TIME_GOES}")
}

/// By profiles of protected runs, made apart from these.
const WHERE_TIME_GOES: &str = "\
Where the time goes:

- **A key**: most are answered behind one commit, of pages that are in no cache any more after 100 ms. What comes besides are calls that
  trap, 3 µs each, until their sites have been rewritten.
- **magic** sends some twenty messages to the X server for a command, and each has a commit before it. Of its processor time 37 % went into comparing
  hot pages, at most 512 at each commit, of which a dozen had changed; 22 % is the kernel's. Having pages leave that set sooner was tried: 2 %
  more time to 14 % less in three pairs of runs, and 60 % more in the log.
- **Many pages**: more than 512 are not compared, so that each costs a page fault, a copy to the log, one more when the log is folded, and being armed again.
- **Computations** pay the same for every page that they write between two commits; what is left at long intervals is noise.
";

fn methods(results: &Results) -> String {
    let named = |name: &str| results.applications.entries.iter().find(|application| application.name == name);
    let keys = named("nvi").and_then(|a| Some(a.rounds.first()?.native.responses_us.len())).unwrap_or(0);
    format!(
        "\
## How it was measured, and what differs from the paper

- **Table 2.** nvi is the paper's own program, and so is magic. sc stands for oleo, and bsdgames' hack for rogue: Debian has neither. hack is
  given a fixed seed (`libseeded.c` is loaded before it), so that both sides walk through the same dungeon. The sessions are generated, since
  the authors' keystrokes are not published, and shorter (nvi: {keys} keys). As in the paper each key comes 100 ms after the program asked for
  it, magic's commands 1 s. That a program asks is seen from outside: it has run since the key and sleeps. The two sides take turns key by
  key. A session's length is the sum of all thoughts, as they were meant to be, and all answers, as they were measured: from the key to
  the next question. The paper's log holds before-images, ours what a commit writes, since the first screen: changed cache lines, whole pages, kernel state.
- **Figure 2.** The paper's program takes a checkpoint by a call; ours writes a byte to a pipe, so that what is added is the commit and the
  exactly-once write.
- **Figure 3.** cjpeg, whose library ijpeg was made from, stands for ijpeg; and for m88ksim, which simulates a processor, a small simulator that
  lua5.4 runs (spim makes a system call every few instructions). `--commit manual --every` commits at the interval and at no other time. The first commit, which holds the program as it was executed, is not counted in the log.
- **Watchers** are the supervisor and the anchor.
"
    )
}

#[cfg(test)]
mod tests {
    use super::super::example;
    use super::*;

    #[test]
    fn the_page_has_the_papers_figures_beside_ours() {
        let page = text(&example::results());
        for line in [
            "| vi (editor), the paper | 881.90 | 882.76 | 0.1 | 7940 | 74 | 144 |",
            "| **nvi**, outlast | 0.20 | 0.20 | 0.20 (0.20 to 0.20) | 4 | 4.0 | 8 |",
            "| nvi | 200 | 400 | 100 | 200 | 50 | 0.150 (0.150 to 0.150) | 2.00 | 0.50 |",
            "| 4 KB | 50 | 2.00 | 25 |",
            "| 1 MB | 12000 | 2.00 | 5762 |",
            "| 50 | – | 10.0 | 8.0 | 20 | 4 | 8 | 4000.00 |",
            "| 1000 | 6 to 10 | 0.1 | 0.1 | 0 | 0 | 0 | – |",
            "load 0.50 before and 1.25 after, 2.5 % of the processors' time stolen by the host",
        ] {
            assert!(page.contains(line), "{line} is missing:\n{page}");
        }
        assert!(!page.contains("quick run"));
    }

    #[test]
    fn what_was_not_measured_is_said() {
        let mut results = example::results();
        results.applications.entries[0].rounds.clear();
        results.applications.entries[0].obstacle = Some("it is not installed".into());
        results.commits = Default::default();
        results.origin.quick = true;
        let page = text(&results);
        assert!(page.contains("| **nvi**, outlast | not measured: it is not installed |"), "{page}");
        assert!(page.contains("Not measured in this run.") && page.contains("A quick run"), "{page}");
    }
}
