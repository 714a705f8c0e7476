//! Runs one test of the suite in a process of its own: `one-case NAME`.
//!
//! Environment: `OUTLAST_SEED`, `OUTLAST_BIN`, `OUTLAST_CASES_CONFINE`, `OUTLAST_CASES_SITE`,
//! `OUTLAST_CASES_BLOWS`, `OUTLAST_CASES_LIMIT` (seconds), `OUTLAST_CASES_MUTANT`.

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use outlast_cases::failure::{Failure, Outcome};
use outlast_cases::launch::Tools;
use outlast_cases::trial::Report;
use outlast_cases::{diagnosis, suite, tree, watchdog};

fn main() -> ExitCode {
    let result = run();
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

fn run() -> Outcome<Report> {
    let name = env::args().nth(1).ok_or_else(|| Failure::Told("usage: one-case NAME".into()))?;
    watchdog::watch(Duration::from_secs(number("OUTLAST_CASES_LIMIT", 120)?))?;
    tree::adopt_orphans()?;
    // Pauses of half a millisecond shall not be rounded up by the timer slack.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    let path =
        |name: &str| env::var_os(name).map(PathBuf::from).ok_or_else(|| Failure::Told(format!("{name} is not set")));
    let tools = Tools { outlast: path("OUTLAST_BIN")?, confine: path("OUTLAST_CASES_CONFINE")? };
    let test = suite::find(&name).ok_or_else(|| Failure::Told(format!("there is no test called {name}")))?;
    let seed = number("OUTLAST_SEED", 1)?;
    let blows = number("OUTLAST_CASES_BLOWS", 12)? as u32;
    test.trial(seed, blows, env::var("OUTLAST_CASES_MUTANT").ok()).run(&tools, &path("OUTLAST_CASES_SITE")?)
}

fn number(name: &str, default: u64) -> Outcome<u64> {
    let Ok(text) = env::var(name) else { return Ok(default) };
    text.parse().map_err(|_| Failure::Told(format!("{name} is no number: {text}")))
}
