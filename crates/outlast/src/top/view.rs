//! What the screen is about: the programs, which of them and in which order, and what is asked.

use super::act::Act;
use super::column::Column;
use super::figures::number;
use super::sample::Row;
use std::cmp::Ordering;
use std::time::Duration;

/// What keys mean just now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    Table,
    Help,
    /// One program, scrolled so far from its last line.
    Inspect(usize),
    /// Text is typed.
    Type(What, String),
    /// Yes or no.
    Confirm(Act, String),
}

/// What is typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    Filter,
    Delay,
    /// To which state this program goes back.
    Rewind(String),
}

pub struct View {
    rows: Vec<Row>,
    pub sort: Column,
    pub reverse: bool,
    pub filter: String,
    pub delay: Duration,
    /// The program that is chosen.
    pub chosen: Option<String>,
    pub mode: Mode,
    /// What came of the last act.
    pub said: Option<String>,
    /// What the program is, in lines; while it is inspected.
    pub lines: Vec<String>,
}

impl View {
    pub fn new(sort: Column, reverse: bool, filter: String, delay: Duration) -> Self {
        Self {
            rows: Vec::new(),
            sort,
            reverse,
            filter,
            delay,
            chosen: None,
            mode: Mode::Table,
            said: None,
            lines: Vec::new(),
        }
    }

    pub fn set(&mut self, rows: Vec<Row>) {
        self.rows = rows;
        self.arrange();
    }

    /// Those that are shown, in their order.
    pub fn rows(&self) -> Vec<&Row> {
        self.rows.iter().filter(|row| fits(row, &self.filter)).collect()
    }

    /// Of all programs, whatever the filter says.
    pub fn summary(&self, time: &str) -> String {
        summary(&self.rows, time)
    }

    /// After the order or the filter changed.
    pub fn arrange(&mut self) {
        let (sort, reverse) = (self.sort, self.reverse);
        self.rows.sort_by(|a, b| order(sort, reverse, a, b));
        if self.at().is_none() {
            self.chosen = self.rows().first().map(|row| row.status.name.clone());
        }
    }

    /// Where the chosen one stands.
    pub fn at(&self) -> Option<usize> {
        let chosen = self.chosen.as_deref()?;
        self.rows().iter().position(|row| row.status.name == chosen)
    }

    pub fn row(&self) -> Option<&Row> {
        let at = self.at()?;
        self.rows().get(at).copied()
    }

    /// Chooses one that is so much further down.
    pub fn move_by(&mut self, by: isize) {
        let last = self.rows().len().saturating_sub(1);
        let to = self.at().unwrap_or(0).saturating_add_signed(by).min(last);
        self.chosen = self.rows().get(to).map(|row| row.status.name.clone());
    }
}

/// Is the text in its name or its command?
pub fn fits(row: &Row, filter: &str) -> bool {
    let filter = filter.to_lowercase();
    let has = |text: &str| text.to_lowercase().contains(&filter);
    has(&row.status.name) || has(&row.status.command.join(" "))
}

pub fn order(sort: Column, reverse: bool, a: &Row, b: &Row) -> Ordering {
    let order = sort.compare(a, b);
    if reverse {
        order.reverse()
    } else {
        order
    }
}

/// All of them in one line, which a small terminal has room for.
pub fn summary(rows: &[Row], time: &str) -> String {
    let protected = rows.iter().filter(|row| row.status.protected).count();
    let commits: f64 = rows.iter().filter_map(|row| row.commits_per_s).sum();
    let sum = |of: fn(&Row) -> u64| rows.iter().map(of).sum::<u64>();
    let (recoveries, storms) = (sum(|row| row.status.recoveries), sum(|row| row.storms));
    let commits = number(commits);
    let count = rows.len();
    let programs = if count == 1 { "program" } else { "programs" };
    format!("outlast {time}  {count} {programs}, {protected} protected  {commits} commits/s  {recoveries} recoveries  {storms} storms")
}
