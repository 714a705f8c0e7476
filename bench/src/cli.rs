//! The command line of the benchmarks.

use crate::evaluation::Paper;
use crate::failure::{Failure, Outcome, Tried};
use crate::machine::Machine;
use crate::measurement::Measurement;
use crate::promise::{Promise, Verdict};
use crate::report::{json, table};
use crate::workshop::Workshop;
use crate::{measure, rounds};
use clap::{Parser, Subcommand};
use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Measure every number that SPECIFICATION.md promises, each paired with a native run
#[derive(Parser)]
#[command(name = "outlast-bench", version, args_conflicts_with_subcommands = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    /// Only promises whose id contains this; may be given more than once
    #[arg(long, short, value_name = "TEXT")]
    filter: Vec<String>,
    /// Print one JSON object in place of the table
    #[arg(long)]
    json: bool,
    /// Pairs of runs a measurement, in place of its own number
    #[arg(long, value_name = "N")]
    rounds: Option<usize>,
    /// List the promises and measure nothing
    #[arg(long)]
    list: bool,
    /// Exit with status 1 if a promise was missed
    #[arg(long)]
    check: bool,
    /// The outlast that is measured  [default: the one beside this program]
    #[arg(long, value_name = "FILE", global = true)]
    outlast: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Command {
    /// Repeat the evaluation of a paper, with its figures beside ours
    #[command(subcommand)]
    Evaluation(Paper),
}

/// Prints; a reader that has gone away is no error.
fn say(text: &str) -> Outcome<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(e).tried("print the report"),
        _ => Ok(()),
    }
}

impl Cli {
    pub fn execute(&self) -> Outcome<ExitCode> {
        if let Some(Command::Evaluation(paper)) = &self.command {
            return say(&paper.execute(&self.outlast()?)?).map(|()| ExitCode::SUCCESS);
        }
        let wanted = self.wanted();
        if self.list {
            let promises = wanted.iter().flat_map(|m| m.promises()).filter(|p| self.wants(&p.id));
            let line = |p: Promise| format!("{}: {}, ≤ {} {}\n", p.id, p.what, p.limit, p.unit.symbol());
            return say(&promises.map(line).collect::<String>()).map(|()| ExitCode::SUCCESS);
        }
        let machine = Machine::prepare();
        let workshop = Workshop::open(&self.outlast()?)?;
        let mut reports = rounds::run(wanted, self.rounds, &workshop);
        reports.retain(|report| self.wants(&report.promise.id));
        say(&match self.json {
            true => {
                format!("{}\n", json::text(&machine, &reports).map_err(|e| Failure::Kernel("write JSON", e.into()))?)
            }
            false => table::text(&machine, &reports),
        })?;
        let missed = reports.iter().any(|report| report.verdict == Verdict::Missed);
        Ok(ExitCode::from(u8::from(self.check && missed)))
    }

    fn wanted(&self) -> Vec<Box<dyn Measurement>> {
        let mut all = measure::all();
        all.retain(|m| m.promises().iter().any(|promise| self.wants(&promise.id)));
        all
    }

    fn wants(&self, id: &str) -> bool {
        self.filter.is_empty() || self.filter.iter().any(|text| id.contains(text.as_str()))
    }

    fn outlast(&self) -> Outcome<PathBuf> {
        if let Some(path) = &self.outlast {
            return Ok(path.clone());
        }
        let own = std::env::current_exe().map_err(|e| Failure::Kernel("find this program's file", e))?;
        Ok(own.with_file_name("outlast"))
    }
}
