//! `outlast top`: how programs fare, again and again, on the whole screen or as text.

mod act;
mod batch;
mod column;
mod draw;
mod figures;
mod inspect;
mod keys;
mod sample;
mod screen;
mod tail;
mod view;

use crate::state;
use clap::Args;
use column::Column;
use outlast_supervisor::Error;
use sample::Sampler;
use std::io::IsTerminal;
use std::time::Duration;

/// Watch programs live: commits, what they take, recoveries
///
/// Keys: arrows choose a program, Enter shows its log, h lists all. Where there is no terminal it prints tables.
#[derive(Args)]
pub struct Top {
    /// Between two looks
    #[arg(short, long, value_name = "SECONDS", default_value = "2", value_parser = delay)]
    delay: Duration,
    /// Print tables, one after the other, rather than to take the screen
    #[arg(short, long)]
    batch: bool,
    /// One JSON object a look, on a line of its own
    #[arg(long)]
    json: bool,
    /// End after so many looks
    #[arg(short = 'n', long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    iterations: Option<u64>,
    /// By what they are sorted
    #[arg(short, long, value_enum, default_value = "name")]
    sort: Column,
    /// The other way round
    #[arg(short, long)]
    reverse: bool,
    /// Only programs with this in their name or command
    #[arg(short, long, value_name = "TEXT", default_value = "")]
    filter: String,
    /// Also those that have ended
    #[arg(short, long)]
    all: bool,
}

/// The first rates are those of this time.
const FIRST: Duration = Duration::from_millis(250);

impl Top {
    pub fn execute(self) -> Result<i32, Error> {
        let sampler = Sampler::new(state::open()?, self.all)?;
        std::thread::sleep(FIRST.min(self.delay));
        let is_screen = !self.batch && !self.json && std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        if is_screen {
            screen::run(sampler, &self)
        } else {
            batch::run(sampler, &self)
        }
    }
}

/// `2`, `0.5`: as top(1) has it, or a duration with its unit.
fn delay(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let delay = seconds.map_or_else(|| crate::duration::parse(text), Ok)?;
    match delay >= Duration::from_millis(50) && delay <= Duration::from_secs(86_400) {
        true => Ok(delay),
        false => Err("between 0.05 and 86400 seconds".into()),
    }
}
