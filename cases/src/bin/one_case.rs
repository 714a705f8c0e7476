//! Runs one test of the suite in a process of its own: `one_case NAME`.
//!
//! Environment: `OUTLAST_SEED`, `OUTLAST_BIN`, `OUTLAST_CASES_CONFINE`, `OUTLAST_CASES_SITE`, `OUTLAST_CASES_DISK`,
//! `OUTLAST_CASES_BLOWS`, `OUTLAST_CASES_LIMIT` (seconds), `OUTLAST_CASES_MUTANT`.

use std::env;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

use outlast_cases::failure::{Failure, Outcome, Tried};
use outlast_cases::launch::Tools;
use outlast_cases::report::Report;
use outlast_cases::{diagnosis, keeper, suite, tree, watchdog};

fn main() -> ExitCode {
    let mut words = env::args().skip(1);
    match (words.next().as_deref(), words.next()) {
        (Some("--kept"), Some(name)) => test(&name),
        (Some(name), None) => keep(name),
        _ => {
            eprintln!("usage: one_case NAME");
            ExitCode::from(2)
        }
    }
}

/// Starts this program again under a keeper.
fn keep(name: &str) -> ExitCode {
    let kept = env::current_exe().tried("find this program").and_then(|this| {
        let mut test = Command::new(this);
        keeper::keep(test.args(["--kept", name]))
    });
    kept.unwrap_or_else(|failure| {
        eprintln!("{failure}");
        ExitCode::FAILURE
    })
}

fn test(name: &str) -> ExitCode {
    let result = run(name);
    let text = if result.is_err() { diagnosis::text() } else { String::new() };
    tree::sweep();
    match result {
        Ok(report) => {
            println!("{report}");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("{failure}\n{text}");
            ExitCode::FAILURE
        }
    }
}

fn run(name: &str) -> Outcome<Report> {
    tree::has_keeper();
    watchdog::watch(Duration::from_secs(number("OUTLAST_CASES_LIMIT", 120)?))?;
    // Pauses of half a millisecond shall not be rounded up by the timer slack.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    let path =
        |name: &str| env::var_os(name).map(PathBuf::from).ok_or_else(|| Failure::Told(format!("{name} is not set")));
    let tools = Tools { outlast: path("OUTLAST_BIN")?, confine: path("OUTLAST_CASES_CONFINE")? };
    let test = suite::find(name).ok_or_else(|| Failure::Told(format!("there is no test called {name}")))?;
    let seed = number("OUTLAST_SEED", 1)?;
    let blows = number("OUTLAST_CASES_BLOWS", 12)? as u32;
    let (site, disk) = (path("OUTLAST_CASES_SITE")?, path("OUTLAST_CASES_DISK")?);
    test.trial(seed, blows, env::var("OUTLAST_CASES_MUTANT").ok()).run(&tools, &site, &disk)
}

fn number(name: &str, default: u64) -> Outcome<u64> {
    let Ok(text) = env::var(name) else { return Ok(default) };
    text.parse().map_err(|_| Failure::Told(format!("{name} is no number: {text}")))
}
