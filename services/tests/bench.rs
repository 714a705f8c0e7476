//! The commands of the evaluation in short: every service is there, with every number.

use std::process::Command;

fn rows(arguments: &[&str]) -> Vec<Vec<String>> {
    let said = Command::new(env!("CARGO_BIN_EXE_glue-bench")).args(arguments).output().expect("the command");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let text = String::from_utf8(said.stdout).expect("text");
    let lines = text.lines().filter(|line| line.starts_with("| ")).skip(1);
    lines.map(|line| line.trim_matches('|').split('|').map(|cell| cell.trim().to_string()).collect()).collect()
}

/// Whether there is one at all is all that is looked at: what it is depends on the machine.
fn is_number(cell: &str) -> bool {
    cell.split(' ').next().is_some_and(|number| number.parse::<f64>().is_ok_and(f64::is_finite))
}

const SERVICES: [&str; 6] = ["event", "fs", "lock", "memory", "scheduler", "timer"];

#[test]
fn every_service_is_measured_and_those_that_are_written_by_hand_beside() {
    let rows = rows(&["services", "--rounds", "1"]);
    assert_eq!(rows.iter().map(|row| row[0].as_str()).collect::<Vec<_>>(), SERVICES);
    for row in &rows {
        let by_hand = ["event", "fs", "lock"].contains(&row[0].as_str());
        for (at, cell) in row.iter().enumerate().skip(1) {
            let missing = !by_hand && [3, 5].contains(&at);
            assert_eq!(is_number(cell), !missing, "{row:?}");
        }
    }
}

#[test]
fn lines_are_counted_of_every_service() {
    let rows = rows(&["lines"]);
    let sums = rows.last().expect("a last one");
    assert_eq!((rows.len(), sums[0].as_str()), (SERVICES.len() + 1, "all"));
    for column in 1..sums.len() {
        let parsed = |row: &Vec<String>| row[column].parse::<u64>().unwrap_or(0);
        let sum: u64 = rows[..SERVICES.len()].iter().map(parsed).sum();
        assert_eq!((parsed(sums), sum > 0), (sum, true), "column {column}");
    }
}

#[test]
fn locks_are_measured_beside_a_pipe() {
    let bench = env!("CARGO_BIN_EXE_glue-bench");
    let said = Command::new(bench).args(["locks", "--rounds", "1"]).output().expect("the command");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let text = String::from_utf8(said.stdout).expect("text");
    assert_eq!(text.lines().count(), 12, "{text}");
    assert!(text.contains("pipe round trip") && !text.contains("NaN"), "{text}");
}
