//! What all evaluations have in common: where figures come from and go to.

use crate::failure::{Failure, Outcome, Tried};
use crate::machine::Machine;
use clap::Args;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Args)]
pub struct Report {
    /// Where to write the page, the data and the pictures; without it the page is printed
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// A minute or two, to see that the measurements work
    #[arg(long)]
    pub quick: bool,
    /// What sessions, moments and data are generated from; campaigns of faults have seeds of their own
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Runs of each kind, in place of each part's own number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: Option<u32>,
    /// Print the figures of all runs as one JSON object
    #[arg(long)]
    pub json: bool,
    /// Take what an earlier run left, and measure only what --only names
    #[arg(long, value_name = "FILE")]
    pub from: Option<PathBuf>,
}

/// Of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Origin {
    pub outlast: String,
    pub machine: Machine,
    pub seed: u64,
    /// Too short to tell anything but that the measurements work.
    pub quick: bool,
}

impl Origin {
    /// Whether figures of both may stand beside each other. Each part says on which machine it was measured.
    pub fn is_like(&self, other: &Self) -> bool {
        let same = |Self { outlast, machine: _, seed, quick }: &Self| (outlast.clone(), *seed, *quick);
        same(self) == same(other)
    }

    /// What the page says of a run that is too short.
    pub fn warning(&self) -> &'static str {
        match self.quick {
            true => "\n**A quick run: it shows that the measurements work, and nothing about their figures.**\n",
            false => "",
        }
    }
}

/// What a page is made of.
pub trait Evaluated: Serialize + DeserializeOwned {
    /// Of the page and the data.
    const NAMES: [&'static str; 2];

    fn origin(&self) -> &Origin;

    /// Markdown.
    fn page(&self) -> String;

    /// By their names.
    ///
    /// # Errors
    /// One cannot be drawn.
    fn pictures(&self) -> Result<Vec<(&'static str, String)>, Box<dyn std::error::Error>>;
}

impl Report {
    pub fn origin(&self, machine: Machine) -> Origin {
        Origin { outlast: env!("CARGO_PKG_VERSION").into(), machine, seed: self.seed, quick: self.quick }
    }

    /// Measures what `takes_all` or what is wanted says, and writes what was found. Returns what is to be printed.
    ///
    /// `beside`: the parts that were not measured are those of an earlier run.
    pub fn make<T: Evaluated>(
        &self,
        takes_all: bool,
        measure: impl FnOnce() -> Outcome<T>,
        beside: impl FnOnce(T, T) -> T,
    ) -> Outcome<String> {
        if let Some(folder) = &self.out {
            // Before an hour is spent on it.
            fs::create_dir_all(folder).tried_on(folder)?;
        }
        let results = match &self.from {
            Some(file) if takes_all => read(file)?,
            Some(file) => {
                let earlier: T = read(file)?;
                if !earlier.origin().is_like(&self.origin(Machine::prepare())) {
                    return Err(Failure::NotHere("the earlier run had another seed, length or outlast".into()));
                }
                beside(earlier, measure()?)
            }
            None => measure()?,
        };
        self.publish(&results)
    }

    fn publish<T: Evaluated>(&self, results: &T) -> Outcome<String> {
        let data = serde_json::to_string_pretty(results).tried("write JSON")? + "\n";
        let page = results.page();
        let Some(folder) = &self.out else { return Ok(if self.json { data } else { page }) };
        let pictures = results.pictures().map_err(|e| Failure::Picture(e.to_string()))?;
        let [page_name, data_name] = T::NAMES;
        for (name, text) in [(page_name, page), (data_name, data.clone())].into_iter().chain(pictures) {
            let path = folder.join(name);
            fs::write(&path, text).tried_on(path)?;
        }
        Ok(if self.json { data } else { format!("{}\n", folder.join(page_name).display()) })
    }
}

fn read<T: DeserializeOwned>(file: &Path) -> Outcome<T> {
    let text = fs::read_to_string(file).tried_on(file)?;
    serde_json::from_str(&text).map_err(|e| Failure::Unreadable(file.display().to_string(), e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(seed: u64, kernel: &str) -> Origin {
        let machine = Machine {
            kernel: kernel.into(),
            processor: "x86".into(),
            processors: 2,
            memory_mib: 1024,
            load: 0.5,
            user: "root".into(),
            priority: 0,
        };
        Origin { outlast: "0.1.0".into(), machine, seed, quick: false }
    }

    #[test]
    fn figures_of_other_seeds_and_lengths_do_not_stand_beside_each_other() {
        let own = origin(1, "6.18.44");
        assert!(own.is_like(&origin(1, "6.12.1")));
        assert!(!own.is_like(&origin(2, "6.18.44")));
        assert!(!own.is_like(&Origin { quick: true, ..own.clone() }));
    }
}
