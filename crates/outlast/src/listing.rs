//! Lists of whatever there is.

use crate::output::{self, columns};
use outlast_supervisor::Error;
use serde::Serialize;

/// Prints `rows`, as JSON or as a table with this head.
pub fn print<T: Serialize, const N: usize>(
    json: bool,
    rows: &[T],
    head: [&str; N],
    cells: impl Fn(&T) -> [String; N],
) -> Result<i32, Error> {
    match json {
        true => output::json(&rows),
        false => output::text(&columns(std::iter::once(head.map(String::from)).chain(rows.iter().map(cells)))),
    }
}

/// Names in a cell.
pub fn names(names: &[impl AsRef<str>]) -> String {
    match names.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(" ") {
        none if none.is_empty() => "-".into(),
        names => names,
    }
}
