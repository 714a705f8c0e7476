//! The heart's price: commit, then write one byte to a pipe exactly once, after some pages were dirtied.

use crate::failure::{Failure, Outcome};
use crate::measurement::{Collected, Measurement};
use crate::promise::{Promise, Relation, Unit};
use crate::trial::{Trial, EACH};
use crate::user::{we_are_root, User};
use crate::workshop::Workshop;
use std::ffi::OsString;

/// Whether the pages were dirtied again and again, or not for long.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Pages {
    Hot,
    Cold,
}

impl Pages {
    fn word(self) -> &'static str {
        match self {
            Self::Hot => "hot",
            Self::Cold => "cold",
        }
    }
}

/// Whether BPF may list the page faults.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Means {
    Bpf,
    /// An ordinary user has none.
    NoBpf,
    /// Whatever the caller has; the promise does not say.
    Any,
}

impl Means {
    fn user(self) -> User {
        match self {
            Self::NoBpf => User::Ordinary,
            Self::Bpf | Self::Any => User::Own,
        }
    }

    fn words(self) -> [&'static str; 2] {
        match self {
            Self::Bpf => ["-bpf", ", with BPF"],
            Self::NoBpf => ["-user", ", user without BPF"],
            Self::Any => ["", ""],
        }
    }
}

/// How the measured program is told to go about it.
#[derive(Clone, Copy)]
struct Effort {
    batches: u32,
    iterations: u32,
}

/// One size of process under one user: numbers of pages, each with its promise in microseconds.
pub struct Commit {
    pages: Pages,
    megabytes: u32,
    means: Means,
    limits: Vec<(u32, f64)>,
    effort: Effort,
    rounds: usize,
}

impl Commit {
    /// 1 / 4 / 16 / 64 pages that are hot.
    pub fn hot(megabytes: u32, means: Means) -> Self {
        let limits = match means {
            Means::NoBpf => [3.0, 3.5, 5.0, 13.0],
            _ => [1.5, 2.0, 3.5, 10.0],
        };
        let limits = [1, 4, 16, 64].into_iter().zip(limits).collect();
        let rounds = if megabytes > 100 { 5 } else { 9 };
        Self { pages: Pages::Hot, megabytes, means, limits, effort: Effort { batches: 100, iterations: 200 }, rounds }
    }

    /// 1 / 16 pages anywhere in a gigabyte.
    pub fn cold(means: Means) -> Self {
        let limits = match means {
            Means::NoBpf => vec![(1, 25.0), (16, 120.0)],
            _ => vec![(1, 8.0), (16, 80.0)],
        };
        let effort = Effort { batches: 60, iterations: 10 };
        Self { pages: Pages::Cold, megabytes: 1024, means, limits, effort, rounds: 5 }
    }

    /// 100 pages of 16 MB: the paper's measure of 1998.
    pub fn cold_hundred() -> Self {
        let effort = Effort { batches: 60, iterations: 3 };
        let limits = vec![(100, 250.0)];
        Self { pages: Pages::Cold, megabytes: 16, means: Means::Any, limits, effort, rounds: 9 }
    }

    fn size(&self) -> String {
        match self.megabytes {
            1024 => "1 GiB".into(),
            megabytes => format!("{megabytes} MB"),
        }
    }

    fn id(&self, pages: u32) -> String {
        let size = self.size().to_lowercase().replace(' ', "");
        format!("commit-{}-{pages}-{size}{}", self.pages.word(), self.means.words()[0])
    }

    fn trial(&self, workshop: &Workshop) -> Trial {
        let numbers = [self.effort.batches, self.effort.iterations].map(|n| n.to_string());
        let words = [&*self.megabytes.to_string(), self.pages.word(), &numbers[0], &numbers[1]].map(OsString::from);
        let pages = self.limits.iter().map(|(pages, _)| pages.to_string().into());
        Trial {
            user: self.means.user(),
            before: vec![workshop.executable("commit").into()],
            after: words.into_iter().chain(pages).collect(),
            figures: self.limits.len(),
        }
    }
}

impl Measurement for Commit {
    fn name(&self) -> String {
        format!("commit, {} pages of {}{}", self.pages.word(), self.size(), self.means.words()[1])
    }

    fn promises(&self) -> Vec<Promise> {
        let promise = |&(pages, limit): &(u32, f64)| Promise {
            id: self.id(pages),
            what: format!(
                "commit and write 1 byte, {pages} {} page{} of {}{}",
                self.pages.word(),
                if pages == 1 { "" } else { "s" },
                self.size(),
                self.means.words()[1]
            ),
            unit: Unit::Microseconds,
            relation: Relation::Whole,
            limit,
        };
        self.limits.iter().map(promise).collect()
    }

    fn rounds(&self) -> usize {
        self.rounds
    }

    fn round(&mut self, number: usize, workshop: &Workshop, collected: &mut Collected) -> Outcome<()> {
        if self.means == Means::Bpf && !we_are_root() {
            return Err(Failure::NotHere("only root may load BPF programs".into()));
        }
        let (native, protected, conditions) = self.trial(workshop).pair(number, workshop, EACH)?;
        collected.conditions(&conditions);
        if self.means == Means::Bpf && !conditions.fault_list {
            collected.obstacle("measured without BPF: this build, or this kernel, has no fault list");
        }
        for ((pages, _), (native, protected)) in self.limits.iter().zip(native.into_iter().zip(protected)) {
            collected.add(&self.id(*pages), Some(native / 1000.0), protected / 1000.0);
        }
        Ok(())
    }
}
