//! A table for a person: a line a promise, then what has to be known to read it.

use crate::machine::Machine;
use crate::promise::{Relation, Report, Unit, Verdict};
use crate::statistics::Summary;

const COLUMNS: usize = 8;
const HEAD: [&str; COLUMNS] = ["", "promise", "measured", "quartiles", "range", "native", "promised", ""];

/// The whole report as text.
pub fn text(machine: &Machine, reports: &[Report]) -> String {
    let body = reports.iter().enumerate().map(|(i, report)| row(i + 1, report));
    let rows: Vec<[String; COLUMNS]> = std::iter::once(HEAD.map(String::from)).chain(body).collect();
    let width = |i: usize| rows.iter().map(|row| row[i].chars().count()).max().unwrap_or(0);
    let widths: [usize; COLUMNS] = std::array::from_fn(width);
    let mut text = format!("{machine}\nMedians of paired, interleaved runs; quartiles and range over the runs.\n\n");
    for row in &rows {
        let cells = row.iter().zip(widths).enumerate();
        let line: Vec<String> = cells.map(|(i, (cell, width))| pad(cell, width, i)).collect();
        text.push_str(line.join("  ").trim_end());
        text.push('\n');
    }
    text + &notes(reports) + &tally(reports)
}

/// Words to the left, figures to the right.
fn pad(cell: &str, width: usize, column: usize) -> String {
    match column {
        1 | 7 => format!("{cell:width$}"),
        _ => format!("{cell:>width$}"),
    }
}

fn row(line: usize, report: &Report) -> [String; COLUMNS] {
    let promise = &report.promise;
    let unit = promise.unit;
    let sign = if promise.relation == Relation::Whole { "" } else { "+" };
    let figure = |f: &dyn Fn(&Summary) -> String| report.figure.as_ref().map_or("–".into(), f);
    // An overhead is one of milliseconds.
    let native_unit = if promise.relation == Relation::Overhead { Unit::Milliseconds } else { unit };
    [
        line.to_string(),
        promise.what.clone(),
        figure(&|f| format!("{}{} {}", if f.median < 0.0 { "" } else { sign }, number(f.median), unit.symbol())),
        figure(&|f| format!("{}–{}", number(f.quartiles[0]), number(f.quartiles[1]))),
        figure(&|f| format!("{}–{}", number(f.range[0]), number(f.range[1]))),
        report.native.map_or("–".into(), |n| format!("{} {}", number(n.median), native_unit.symbol())),
        format!("≤ {sign}{} {}", number(promise.limit), unit.symbol()),
        report.verdict.word().into(),
    ]
}

/// Three digits that count.
fn number(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => short(format!("{value:.1}")),
        v if v >= 1.0 => short(format!("{value:.2}")),
        _ => short(format!("{value:.3}")),
    }
}

fn short(digits: String) -> String {
    digits.trim_end_matches('0').trim_end_matches('.').into()
}

/// Notes that several lines share are said once.
fn notes(reports: &[Report]) -> String {
    let mut said: Vec<(&str, Vec<usize>)> = Vec::new();
    for (line, report) in (1..).zip(reports) {
        for note in &report.notes {
            match said.iter_mut().find(|(text, _)| text == note) {
                Some((_, lines)) => lines.push(line),
                None => said.push((note, vec![line])),
            }
        }
    }
    let lines = said.iter().map(|(note, lines)| format!("  {}: {note}\n", spans(lines)));
    format!("\nNotes\n{}", lines.collect::<String>())
}

/// Ascending numbers, neighbours as a span: `1–3, 5`.
fn spans(numbers: &[usize]) -> String {
    let mut spans: Vec<(usize, usize)> = Vec::new();
    for &n in numbers {
        match spans.last_mut() {
            Some((_, last)) if *last + 1 == n => *last = n,
            _ => spans.push((n, n)),
        }
    }
    let words = spans.iter().map(|(a, b)| if a == b { a.to_string() } else { format!("{a}–{b}") });
    words.collect::<Vec<_>>().join(", ")
}

fn tally(reports: &[Report]) -> String {
    let count = |verdict| reports.iter().filter(|r| r.verdict == verdict).count();
    let [met, missed, open] = [Verdict::Met, Verdict::Missed, Verdict::NotMeasured].map(count);
    format!("\n{met} met, {missed} missed, {open} not measured\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_lines_are_named_as_a_span() {
        assert_eq!(spans(&[1, 2, 3, 5, 8, 9]), "1–3, 5, 8–9");
    }

    #[test]
    fn numbers_have_the_digits_that_count() {
        assert_eq!(
            [1234.5, 12.34, 10.0, 3.0, 1.5, 0.0456, 0.0].map(number),
            ["1234", "12.3", "10", "3", "1.5", "0.046", "0"]
        );
    }
}
