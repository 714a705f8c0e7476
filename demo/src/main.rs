//! The main job, shown on real input: an interactive python3 on a terminal is killed again and again, and answers as if
//! nothing had happened. Every byte is compared with an unharmed conversation.

mod conversation;
mod failure;
mod outlast;
mod script;
mod terminal;

use conversation::Seen;
use failure::{Failure, Outcome};
use outlast::Outlast;
use std::process::ExitCode;
use std::time::{Duration, Instant};

fn main() -> ExitCode {
    match demonstrate() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("\noutlast-demo: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn demonstrate() -> Outcome<()> {
    let began = Instant::now();
    let outlast = Outlast::find()?;
    if !is_on_path("python3") {
        return Err(Failure::NoPython);
    }
    println!("First a conversation with python3 that nobody kills, to compare with …");
    let unharmed = conversation::unharmed()?;
    println!("… and now `outlast run --every 50ms -- python3 -q`, killed {} times:\n", script::kills());
    let harmed = conversation::harmed(&outlast)?;
    compare(&unharmed, &harmed, &outlast)?;
    tell(&harmed, began.elapsed());
    outlast.forget()
}

fn is_on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).exists())
}

fn compare(unharmed: &Seen, harmed: &Seen, outlast: &Outlast) -> Outcome<()> {
    let (expected, got) = (&unharmed.transcript, &harmed.transcript);
    if expected != got {
        let at = expected.iter().zip(got).take_while(|(a, b)| a == b).count();
        let excerpt = |bytes: &[u8]| {
            let around = &bytes[at.saturating_sub(20)..bytes.len().min(at + 60)];
            String::from_utf8_lossy(around).into_owned()
        };
        return Err(Failure::Differs(at, excerpt(got), excerpt(expected), outlast.name.clone()));
    }
    match harmed.status == unharmed.status {
        true => Ok(()),
        false => {
            let words = [harmed, unharmed].map(|seen| seen.status.to_string());
            let [got, expected] = words;
            Err(Failure::Status(got, expected, outlast.name.clone()))
        }
    }
}

fn tell(harmed: &Seen, took: Duration) {
    let mut times = harmed.recoveries.clone();
    times.sort();
    let milliseconds = |t: Option<&Duration>| t.map_or(0.0, |t| t.as_secs_f64() * 1e3);
    let (commits, lost) = match &harmed.protection {
        Some(protection) => (protection.commits, protection.degradations.join(", ")),
        None => (0, String::new()),
    };
    let lost = if lost.is_empty() { "nothing" } else { &lost };
    println!("\n{} kills, {} recoveries; {commits} commits; not preserved: {lost}", times.len(), times.len());
    println!(
        "from death to the next instruction: {:.2} ms in the middle, {:.2} to {:.2} (from `outlast log`)",
        milliseconds(times.get(times.len() / 2)),
        milliseconds(times.first()),
        milliseconds(times.last()),
    );
    println!(
        "all {} bytes on the terminal and the exit status are those of the unharmed python3; {:.1} s",
        harmed.transcript.len(),
        took.as_secs_f64()
    );
}
