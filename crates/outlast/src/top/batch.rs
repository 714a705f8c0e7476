//! Tables or JSON, for scripts and files.

use super::column::Column;
use super::sample::{Row, Sampler};
use super::{view, Top};
use crate::output;
use outlast_supervisor::Error;
use serde::Serialize;
use std::time::{Instant, SystemTime};

/// One look.
#[derive(Serialize)]
struct Look<'a> {
    /// RFC 3339.
    time: String,
    programs: &'a [Row],
}

pub fn run(mut sampler: Sampler, top: &Top) -> Result<i32, Error> {
    let mut due = Instant::now();
    for n in 1.. {
        let mut rows = sampler.look()?;
        rows.retain(|row| view::fits(row, &top.filter));
        rows.sort_by(|a, b| view::order(top.sort, top.reverse, a, b));
        let time = humantime::format_rfc3339_millis(SystemTime::now()).to_string();
        if top.json {
            output::json(&Look { time, programs: &rows })?;
        } else {
            let head = Column::ALL.map(|column| column.head().to_string());
            let cells = rows.iter().map(|row| Column::ALL.map(|column| column.cell(row)));
            let table = output::columns(std::iter::once(head).chain(cells));
            output::text(&format!("{}{}\n{table}", if n == 1 { "" } else { "\n" }, view::summary(&rows, &time)))?;
        }
        if top.iterations.is_some_and(|count| n >= count) {
            break;
        }
        due += top.delay;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    Ok(0)
}
