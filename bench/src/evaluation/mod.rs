//! The evaluation of a paper, repeated: its tables and figures, with outlast in the place of what it evaluates.

mod applications;
mod attention;
mod commits;
mod computations;
mod display;
#[cfg(test)]
mod example;
mod figures;
mod judgement;
mod page;
mod paper;
mod programs;
mod progress;
mod results;
mod rmk;
mod sessions;
mod summary;
mod surroundings;

use crate::failure::{Failure, Outcome, Tried};
use crate::machine::Machine;
use crate::workshop::Workshop;
use applications::Order;
use clap::{Args, Subcommand, ValueEnum};
use computations::Kind;
use programs::Program;
use progress::Progress;
use results::{Pattern, Results, Section};
use std::fs;
use std::path::{Path, PathBuf};
use surroundings::Watch;

/// Papers whose evaluation can be repeated.
#[derive(Subcommand)]
pub enum Paper {
    /// Discount Checking (Lowell and Chen, 1998): Table 2, Figure 2 and Figure 3; some twenty minutes
    DiscountChecking(Options),
    /// RMK (Wang, Kalbarczyk, Gu and Iyer, 2007): Tables 7, 8 and 9 and Figure 9; two hours
    Rmk(rmk::Options),
}

#[derive(Args)]
pub struct Options {
    /// Where to write the page, the data and the pictures; without it the page is printed
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// A minute or two, to see that the measurements work
    #[arg(long)]
    quick: bool,
    /// What sessions and data are generated from
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Pairs of runs, in place of each part's own number
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

impl Paper {
    /// Measures, and writes what was found. Returns what is to be printed.
    pub fn execute(&self, outlast: &Path) -> Outcome<String> {
        let options = match self {
            Self::DiscountChecking(options) => options,
            Self::Rmk(options) => return options.execute(outlast),
        };
        if let Some(folder) = &options.out {
            // Before twenty minutes are spent on it.
            fs::create_dir_all(folder).tried_on(folder)?;
        }
        let results = match &options.from {
            Some(file) if options.only.is_empty() => read(file)?,
            Some(file) => options.measure_beside(read(file)?, outlast)?,
            None => options.measure(outlast)?,
        };
        let data = serde_json::to_string_pretty(&results).tried("write JSON")?;
        let page = page::text(&results);
        if let Some(folder) = &options.out {
            let picture = |drawn: Result<String, _>| {
                drawn.map_err(|e: Box<dyn std::error::Error>| Failure::Picture(e.to_string()))
            };
            let files = [
                ("discount-checking.md", page.clone()),
                (page::DATA, data.clone() + "\n"),
                (page::FIGURE_2, picture(figures::commits(&results))?),
                (page::FIGURE_3, picture(figures::computations(&results))?),
            ];
            for (name, text) in files {
                let path = folder.join(name);
                fs::write(&path, text).tried_on(path)?;
            }
        }
        Ok(match (options.json, &options.out) {
            (true, _) => data + "\n",
            (false, Some(folder)) => format!("{}\n", folder.join("discount-checking.md").display()),
            (false, None) => page,
        })
    }
}

fn read(file: &Path) -> Outcome<Results> {
    let text = fs::read_to_string(file).tried_on(file)?;
    serde_json::from_str(&text).map_err(|e| Failure::Unreadable(file.display().to_string(), e.to_string()))
}

impl Options {
    fn wants(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }

    fn rounds(&self, part: Part) -> usize {
        self.rounds.map_or(part.rounds(self.quick), |rounds| rounds as usize)
    }

    fn order(&self) -> Order {
        Order { seed: self.seed, rounds: self.rounds(Part::Table2), quick: self.quick }
    }

    /// Estimated tenths of a second.
    fn tenths(&self) -> u64 {
        let of = |part, tenths: u64| if self.wants(part) { tenths } else { 0 };
        let [figure_2, figure_3] = [Part::Figure2, Part::Figure3].map(|part| self.rounds(part));
        of(Part::Table2, Program::ALL.map(|program| applications::tenths(program, self.order())).iter().sum())
            + of(Part::Figure2, commits::tenths(figure_2, self.quick) * Pattern::ALL.len() as u64)
            + of(Part::Figure3, computations::tenths(figure_3, self.quick) * Kind::ALL.len() as u64)
    }

    fn measure(&self, outlast: &Path) -> Outcome<Results> {
        let machine = Machine::prepare();
        let workshop = Workshop::open(outlast)?;
        let progress = Progress::new(self.tenths());
        let (quick, seed) = (self.quick, self.seed);
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
        Ok(Results {
            outlast: env!("CARGO_PKG_VERSION").into(),
            machine,
            seed,
            quick,
            applications,
            commits,
            computations,
        })
    }

    /// Some parts anew; the others stay as an earlier run on the same machine left them.
    fn measure_beside(&self, earlier: Results, outlast: &Path) -> Outcome<Results> {
        let new = self.measure(outlast)?;
        let same = |results: &Results| {
            let Results { outlast, machine, seed, quick, .. } = results;
            (outlast.clone(), machine.kernel.clone(), machine.processor.clone(), machine.processors, *seed, *quick)
        };
        if same(&earlier) != same(&new) {
            return Err(Failure::NotHere("the earlier run had another machine, seed, length or outlast".into()));
        }
        Ok(Results {
            applications: if self.wants(Part::Table2) { new.applications } else { earlier.applications },
            commits: if self.wants(Part::Figure2) { new.commits } else { earlier.commits },
            computations: if self.wants(Part::Figure3) { new.computations } else { earlier.computations },
            ..new
        })
    }

    /// All that belongs to one part, and who else used the machine meanwhile.
    fn section<K: Copy, T>(&self, part: Part, kinds: &[K], measure: impl Fn(K, usize) -> T) -> Section<T> {
        if !self.wants(part) {
            return Section::default();
        }
        let watch = Watch::begin();
        let entries = kinds.iter().map(|kind| measure(*kind, self.rounds(part))).collect();
        Section { surroundings: Some(watch.end()), entries }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            Paper::DiscountChecking(Options {
                out: Some(folder.path().join("made/here")),
                quick: false,
                seed: 1,
                rounds: None,
                only: Vec::new(),
                json: false,
                from: Some(from),
            })
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
