//! RMK's evaluation (*Reliability MicroKernel*, §7): Tables 7, 8 and 9 and Figure 9, with outlast in the place of what it evaluates.

mod applications;
mod confidence;
#[cfg(test)]
mod example;
mod figures;
mod hangs;
mod page;
mod recovery;
mod results;
mod throughput;
pub mod web;

use super::progress::Progress;
use super::report::{Evaluated, Origin, Report};
use super::section::Section;
use crate::failure::Outcome;
use crate::machine::Machine;
use crate::workshop::Workshop;
use applications::Program;
use clap::{Args, ValueEnum};
use recovery::Kind;
use results::Results;
use std::path::{Path, PathBuf};

#[derive(Args)]
pub struct Options {
    #[command(flatten)]
    report: Report,
    /// This part of the full numbers of faults, sessions and kills
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, value_parser = share)]
    scale: f64,
    /// Only this part; may be given more than once
    #[arg(long, value_name = "PART")]
    only: Vec<Part>,
    /// Where campaigns leave their results, and go on where they were interrupted
    #[arg(long, value_name = "DIR")]
    campaigns: Option<PathBuf>,
    /// Take campaigns as far as they are
    #[arg(long, requires = "campaigns")]
    as_they_are: bool,
}

fn share(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "a number is needed".to_string())?;
    if number > 0.0 && number <= 100.0 {
        Ok(number)
    } else {
        Err("more than 0, and at most 100".into())
    }
}

/// A table or figure of the paper.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Campaigns of faults
    #[value(name = "table-7")]
    Faults,
    /// Sessions without faults
    #[value(name = "table-7-unharmed")]
    Unharmed,
    #[value(name = "table-8")]
    Table8,
    #[value(name = "table-9")]
    Table9,
    #[value(name = "figure-9")]
    Figure9,
}

/// How much is measured.
#[derive(Clone, Copy)]
pub struct Extent {
    quick: bool,
    scale: f64,
    seed: u64,
}

impl Extent {
    /// Of a full number, or the short form's.
    fn of(self, whole: usize, short: usize) -> usize {
        match self.quick {
            true => short,
            false => ((whole as f64 * self.scale).round() as usize).max(1),
        }
    }
}

impl Evaluated for Results {
    const NAMES: [&'static str; 2] = [page::PAGE, page::DATA];

    fn origin(&self) -> &Origin {
        &self.origin
    }

    fn page(&self) -> String {
        page::text(self)
    }

    fn pictures(&self) -> Result<Vec<(&'static str, String)>, Box<dyn std::error::Error>> {
        Ok(vec![(page::FIGURE_9, figures::throughput(self)?)])
    }
}

impl Options {
    /// Measures, and writes what was found. Returns what is to be printed.
    pub fn execute(&self, outlast: &Path) -> Outcome<String> {
        let beside = |earlier: Results, new: Results| Results {
            injected: if self.wants(Part::Faults) { new.injected } else { earlier.injected },
            unharmed: if self.wants(Part::Unharmed) { new.unharmed } else { earlier.unharmed },
            applications: if self.wants(Part::Table8) { new.applications } else { earlier.applications },
            approaches: if self.wants(Part::Table9) { new.approaches } else { earlier.approaches },
            loads: if self.wants(Part::Figure9) { new.loads } else { earlier.loads },
            ..new
        };
        self.report.make(self.only.is_empty(), || self.measure(outlast), beside)
    }

    fn wants(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }

    fn rounds(&self) -> usize {
        self.report.rounds.map_or(if self.report.quick { 1 } else { 5 }, |rounds| rounds as usize)
    }

    fn extent(&self) -> Extent {
        Extent { quick: self.report.quick, scale: self.scale, seed: self.report.seed }
    }

    /// Estimated tenths of a second.
    fn tenths(&self) -> u64 {
        let (rounds, extent) = (self.rounds(), self.extent());
        let of = |part, tenths: u64| if self.wants(part) { tenths } else { 0 };
        of(Part::Table8, applications::tenths(rounds, self.report.quick) * Program::ALL.len() as u64)
            + of(Part::Table9, recovery::tenths(extent) * Kind::ALL.len() as u64)
            + of(Part::Figure9, throughput::tenths(rounds, self.report.quick))
            + of(Part::Faults, hangs::tenths(extent))
    }

    fn measure(&self, outlast: &Path) -> Outcome<Results> {
        let machine = Machine::prepare();
        let workshop = Workshop::open(outlast)?;
        let progress = Progress::new(self.tenths());
        let (extent, rounds) = (self.extent(), self.rounds());
        let own = workshop.executable("campaigns");
        let folder = self.campaigns.as_ref().unwrap_or(&own);
        let applications = self.section(Part::Table8, || {
            let measure = |program| applications::measure(program, extent, rounds, &workshop, &progress);
            Program::ALL.map(measure).into()
        });
        let loads = self.section(Part::Figure9, || throughput::measure(extent, rounds, &workshop, &progress));
        let approaches = self.section(Part::Table9, || {
            Kind::ALL.map(|kind| recovery::measure(kind, extent, &workshop, &progress)).into()
        });
        let unharmed = self.section(Part::Unharmed, || hangs::unharmed(extent, &workshop, &progress));
        let injected =
            self.section(Part::Faults, || hangs::inject(extent, folder, self.as_they_are, &workshop, &progress));
        progress.end();
        let origin = self.report.origin(machine);
        Ok(Results { origin, scale: self.scale, injected, unharmed, applications, approaches, loads })
    }

    fn section<T>(&self, part: Part, measure: impl FnOnce() -> Vec<T>) -> Section<T> {
        Section::measure(self.wants(part), measure)
    }
}
