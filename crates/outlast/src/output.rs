//! What the commands print. A reader that has gone away is no error.

use outlast_supervisor::say::printable;
use outlast_supervisor::Error;
use serde::Serialize;
use std::io::{ErrorKind, Write};

/// Prints a value as JSON, and a newline.
pub fn json(value: &impl Serialize) -> Result<i32, Error> {
    let text = serde_json::to_string(value).map_err(|_| Error::Output(ErrorKind::InvalidData.into()))?;
    self::text(&(text + "\n"))
}

/// Prints text as it is; returns the exit status.
pub fn text(text: &str) -> Result<i32, Error> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(0),
        Err(e) if e.kind() == ErrorKind::BrokenPipe => Ok(0),
        Err(e) => Err(Error::Output(e)),
    }
}

/// Lines of columns, each as wide as its widest cell.
pub fn columns<const N: usize>(rows: impl Iterator<Item = [String; N]>) -> String {
    let rows: Vec<_> = rows.map(|row| row.map(|cell| printable(&cell))).collect();
    let widths: [usize; N] = std::array::from_fn(|i| rows.iter().map(|row| row[i].chars().count()).max().unwrap_or(0));
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_string() + "\n"
    };
    rows.iter().map(line).collect()
}
