//! Discount Checking's evaluation (§5): Table 2 and Figures 2 and 3.

mod applications;
mod attention;
pub mod commits;
mod computations;
mod display;
#[cfg(test)]
mod example;
mod figures;
mod judgement;
mod page;
mod paper;
mod programs;
pub mod results;
mod sessions;
mod summary;

use super::progress::Progress;
use super::report::{Evaluated, Origin, Report};
use super::section::Section;
use crate::failure::Outcome;
use crate::machine::Machine;
use crate::workshop::Workshop;
use applications::Order;
use clap::{Args, ValueEnum};
use computations::Kind;
use programs::Program;
use results::{Pattern, Results};
use std::path::Path;

#[derive(Args)]
pub struct Options {
    #[command(flatten)]
    report: Report,
    /// Only this part; may be given more than once
    #[arg(long, value_name = "PART")]
    only: Vec<Part>,
}

/// A table or figure of the paper.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    #[value(name = "table-2")]
    Table2,
    #[value(name = "figure-2")]
    Figure2,
    #[value(name = "figure-3")]
    Figure3,
}

impl Part {
    /// Pairs of runs.
    fn rounds(self, quick: bool) -> usize {
        match self {
            _ if quick => 1,
            Self::Figure2 => 5,
            Self::Table2 | Self::Figure3 => 3,
        }
    }
}

impl Evaluated for Results {
    const NAMES: [&'static str; 2] = ["discount-checking.md", page::DATA];

    fn origin(&self) -> &Origin {
        &self.origin
    }

    fn page(&self) -> String {
        page::text(self)
    }

    fn pictures(&self) -> Result<Vec<(&'static str, String)>, Box<dyn std::error::Error>> {
        Ok(vec![(page::FIGURE_2, figures::commits(self)?), (page::FIGURE_3, figures::computations(self)?)])
    }
}

impl Options {
    /// Measures, and writes what was found. Returns what is to be printed.
    pub fn execute(&self, outlast: &Path) -> Outcome<String> {
        let beside = |earlier: Results, new: Results| Results {
            applications: if self.wants(Part::Table2) { new.applications } else { earlier.applications },
            commits: if self.wants(Part::Figure2) { new.commits } else { earlier.commits },
            computations: if self.wants(Part::Figure3) { new.computations } else { earlier.computations },
            ..new
        };
        self.report.make(self.only.is_empty(), || self.measure(outlast), beside)
    }

    fn wants(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }

    fn rounds(&self, part: Part) -> usize {
        self.report.rounds.map_or(part.rounds(self.report.quick), |rounds| rounds as usize)
    }

    fn order(&self) -> Order {
        Order { seed: self.report.seed, rounds: self.rounds(Part::Table2), quick: self.report.quick }
    }

    /// Estimated tenths of a second.
    fn tenths(&self) -> u64 {
        let of = |part, tenths: u64| if self.wants(part) { tenths } else { 0 };
        let [figure_2, figure_3] = [Part::Figure2, Part::Figure3].map(|part| self.rounds(part));
        of(Part::Table2, Program::ALL.map(|program| applications::tenths(program, self.order())).iter().sum())
            + of(Part::Figure2, commits::tenths(figure_2, self.report.quick) * Pattern::ALL.len() as u64)
            + of(Part::Figure3, computations::tenths(figure_3, self.report.quick) * Kind::ALL.len() as u64)
    }

    fn measure(&self, outlast: &Path) -> Outcome<Results> {
        let machine = Machine::prepare();
        let workshop = Workshop::open(outlast)?;
        let progress = Progress::new(self.tenths());
        let Report { quick, seed, .. } = self.report;
        let applications = self.section(Part::Table2, &Program::ALL, |program, _| {
            applications::measure(program, self.order(), &workshop, &progress)
        });
        let commits = self.section(Part::Figure2, &Pattern::ALL, |pattern, rounds| {
            commits::measure(pattern, rounds, quick, &workshop, &progress)
        });
        let computations = self.section(Part::Figure3, &Kind::ALL, |kind, rounds| {
            computations::measure(kind, seed, rounds, quick, &workshop, &progress)
        });
        progress.end();
        Ok(Results { origin: self.report.origin(machine), applications, commits, computations })
    }

    fn section<K: Copy, T>(&self, part: Part, kinds: &[K], measure: impl Fn(K, usize) -> T) -> Section<T> {
        let all = || kinds.iter().map(|kind| measure(*kind, self.rounds(part))).collect();
        Section::measure(self.wants(part), all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Failure;
    use std::fs;
    use std::path::PathBuf;

    #[test]
    fn results_are_read_back_as_they_were_written() {
        let text = serde_json::to_string(&example::results()).unwrap();
        let again: Results = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&again).unwrap(), text);
        assert_eq!(page::text(&again), page::text(&example::results()));
    }

    #[test]
    fn a_page_is_made_of_what_an_earlier_run_left() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        fs::write(&data, serde_json::to_string(&example::results()).unwrap()).unwrap();
        let options = |from: PathBuf| {
            let out = Some(folder.path().join("made/here"));
            let report = Report { out, quick: false, seed: 1, rounds: None, json: false, from: Some(from) };
            Options { report, only: Vec::new() }
        };
        let said = options(data.clone()).execute(Path::new("/nowhere")).unwrap();
        assert_eq!(fs::read_to_string(said.trim()).unwrap(), page::text(&example::results()));
        for name in [page::DATA, page::FIGURE_2, page::FIGURE_3] {
            assert!(folder.path().join("made/here").join(name).exists(), "{name}");
        }
        fs::write(&data, "{}").unwrap();
        assert!(matches!(options(data).execute(Path::new("/nowhere")), Err(Failure::Unreadable(..))));
    }
}
