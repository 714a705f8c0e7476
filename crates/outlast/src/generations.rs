//! `outlast generations`: to which older states a program can go back.

use crate::output::{self, columns};
use crate::state;
use clap::Args;
use outlast_archive::Kept;
use outlast_supervisor::generations::{age, list};
use outlast_supervisor::Error;
use serde::Serialize;
use std::time::{Duration, SystemTime};

/// List the older states of a program, which rewind and fork take
#[derive(Args)]
pub struct Generations {
    /// The program
    name: String,
    /// One array of JSON objects
    #[arg(long)]
    json: bool,
}

/// In the words of `--json`.
#[derive(Serialize)]
struct Line {
    generation: u64,
    /// RFC 3339, UTC.
    time: String,
    age_s: f64,
    /// Bytes that it takes.
    bytes: u64,
    /// Pages of the program's memory.
    pages: u64,
    /// The commit.
    seq: u64,
    /// Whether it takes a key to go back to it.
    encrypted: bool,
}

impl Generations {
    pub fn execute(self) -> Result<i32, Error> {
        let kept = list(&state::open()?.program(&self.name)?)?;
        if self.json {
            return output::json(&kept.iter().map(line).collect::<Vec<_>>());
        }
        if kept.is_empty() {
            return Ok(0);
        }
        let head = ["GENERATION", "AGE", "SIZE"].map(String::from);
        output::text(&columns(std::iter::once(head).chain(kept.iter().map(row))))
    }
}

fn line(kept: &Kept) -> Line {
    let time = SystemTime::UNIX_EPOCH + Duration::from_micros(kept.time_us);
    Line {
        generation: kept.number,
        time: humantime::format_rfc3339_micros(time).to_string(),
        age_s: (age(kept).as_secs_f64() * 1000.0).round() / 1000.0,
        bytes: kept.bytes,
        pages: kept.pages,
        seq: kept.seq,
        encrypted: kept.encrypted,
    }
}

fn row(kept: &Kept) -> [String; 3] {
    let age = humantime::format_duration(Duration::from_secs(age(kept).as_secs()));
    [kept.number.to_string(), age.to_string(), size(kept.bytes)]
}

/// Bytes in words.
fn size(bytes: u64) -> String {
    match bytes {
        0..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        1_048_576..1_073_741_824 => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
        _ => format!("{:.1} GiB", bytes as f64 / 1_073_741_824.0),
    }
}
