//! RMK's evaluation (*Reliability MicroKernel*, §7): Tables 7, 8 and 9 and Figure 9, with outlast in the place of what it evaluates.

mod applications;
mod confidence;
mod figures;
mod hangs;
mod page;
mod recovery;
mod results;
mod throughput;
mod web;

use super::progress::Progress;
use super::results::Section;
use super::surroundings::Watch;
use crate::failure::{Failure, Outcome, Tried};
use crate::machine::Machine;
use crate::workshop::Workshop;
use applications::Program;
use clap::{Args, ValueEnum};
use recovery::Kind;
use results::Results;
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Args)]
pub struct Options {
    /// Where to write the page, the data and the picture; without it the page is printed
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Less than a minute, to see that the measurements work
    #[arg(long)]
    quick: bool,
    /// This part of the full numbers of faults, sessions and kills
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, value_parser = share)]
    scale: f64,
    /// What pages, moments and sessions are drawn from; campaigns have seeds of their own
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Runs of each kind in Table 8 and Figure 9
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,
    /// Only this part; may be given more than once
    #[arg(long, value_name = "PART")]
    only: Vec<Part>,
    /// Print the figures of all runs as one JSON object
    #[arg(long)]
    json: bool,
    /// Take what an earlier run left, and measure only what --only names
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
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

impl Options {
    /// Measures, and writes what was found. Returns what is to be printed.
    pub fn execute(&self, outlast: &Path) -> Outcome<String> {
        if let Some(folder) = &self.out {
            // Before an hour is spent on it.
            fs::create_dir_all(folder).tried_on(folder)?;
        }
        let results = match &self.from {
            Some(file) if self.only.is_empty() => read(file)?,
            Some(file) => self.measure_beside(read(file)?, outlast)?,
            None => self.measure(outlast)?,
        };
        let data = serde_json::to_string_pretty(&results).tried("write JSON")?;
        let page = page::text(&results);
        let Some(folder) = &self.out else { return Ok(if self.json { data + "\n" } else { page }) };
        let picture = figures::throughput(&results).map_err(|e| Failure::Picture(e.to_string()))?;
        for (name, text) in [(page::PAGE, page), (page::DATA, data.clone() + "\n"), (page::FIGURE_9, picture)] {
            let path = folder.join(name);
            fs::write(&path, text).tried_on(path)?;
        }
        Ok(if self.json { data + "\n" } else { format!("{}\n", folder.join(page::PAGE).display()) })
    }

    fn wants(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }

    fn rounds(&self) -> usize {
        self.rounds.map_or(if self.quick { 1 } else { 5 }, |rounds| rounds as usize)
    }

    fn extent(&self) -> Extent {
        Extent { quick: self.quick, scale: self.scale, seed: self.seed }
    }

    /// Estimated tenths of a second.
    fn tenths(&self) -> u64 {
        let (rounds, extent) = (self.rounds(), self.extent());
        let of = |part, tenths: u64| if self.wants(part) { tenths } else { 0 };
        of(Part::Table8, applications::tenths(rounds, self.quick) * Program::ALL.len() as u64)
            + of(Part::Table9, recovery::tenths(extent) * Kind::ALL.len() as u64)
            + of(Part::Figure9, throughput::tenths(rounds, self.quick))
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
        Ok(Results {
            outlast: env!("CARGO_PKG_VERSION").into(),
            machine,
            seed: self.seed,
            quick: self.quick,
            scale: self.scale,
            injected,
            unharmed,
            applications,
            approaches,
            loads,
        })
    }

    /// Some parts anew; the others stay as an earlier run on the same machine left them.
    fn measure_beside(&self, earlier: Results, outlast: &Path) -> Outcome<Results> {
        let new = self.measure(outlast)?;
        let same = |results: &Results| {
            let Results { outlast, machine, quick, .. } = results;
            (outlast.clone(), machine.kernel.clone(), machine.processor.clone(), machine.processors, *quick)
        };
        if same(&earlier) != same(&new) {
            return Err(Failure::NotHere("the earlier run had another machine, length or outlast".into()));
        }
        Ok(Results {
            injected: if self.wants(Part::Faults) { new.injected } else { earlier.injected },
            unharmed: if self.wants(Part::Unharmed) { new.unharmed } else { earlier.unharmed },
            applications: if self.wants(Part::Table8) { new.applications } else { earlier.applications },
            approaches: if self.wants(Part::Table9) { new.approaches } else { earlier.approaches },
            loads: if self.wants(Part::Figure9) { new.loads } else { earlier.loads },
            ..new
        })
    }

    /// All that belongs to one part, and who else used the machine meanwhile.
    fn section<T>(&self, part: Part, measure: impl FnOnce() -> Vec<T>) -> Section<T> {
        if !self.wants(part) {
            return Section::default();
        }
        let watch = Watch::begin();
        let entries = measure();
        Section { surroundings: Some(watch.end()), entries }
    }
}

fn read(file: &Path) -> Outcome<Results> {
    let text = fs::read_to_string(file).tried_on(file)?;
    serde_json::from_str(&text).map_err(|e| Failure::Unreadable(file.display().to_string(), e.to_string()))
}
