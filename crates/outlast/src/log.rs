//! `outlast log`: what happened to a program, or to a system of components, and what was done.

use crate::{output, state};
use clap::Args;
use outlast_supervisor::log::{Entry, FILE};
use outlast_supervisor::program_folder::ProgramFolder;
use outlast_supervisor::Error;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::time::Duration;

/// Show what happened to a program, and what was done
#[derive(Args)]
pub struct Log {
    /// The program, or the system of components
    name: String,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
    /// Go on as lines are added, until the program has ended
    #[arg(short, long)]
    follow: bool,
}

/// How often a log that is followed is looked at.
const PULSE: Duration = Duration::from_millis(50);

impl Log {
    pub fn execute(self) -> Result<i32, Error> {
        let folder = state::open()?.program(&self.name)?;
        let path = folder.path().join(FILE);
        let file = File::open(&path).map_err(|_| Error::NoSuchProgram(self.name.clone()))?;
        let mut lines = BufReader::new(file);
        let mut line = Vec::new();
        loop {
            // A line without its end is still being written.
            match lines.read_until(b'\n', &mut line) {
                Ok(_) if line.ends_with(b"\n") => {
                    self.print(&String::from_utf8_lossy(&line))?;
                    line.clear();
                }
                Ok(_) if self.follow && is_going_on(&folder) => std::thread::sleep(PULSE),
                Ok(0) => return Ok(0),
                Ok(_) => (),
                Err(e) => return Err(Error::Input(path, e)),
            }
        }
    }

    fn print(&self, line: &str) -> Result<i32, Error> {
        match serde_json::from_str::<Entry>(line) {
            Ok(_) if self.json => output::text(line),
            Ok(entry) => {
                let stacks: String = entry.stacks.iter().map(|stack| format!("    {stack}\n")).collect();
                output::text(&format!("{}  {}\n{stacks}", entry.time, entry.sentence()))
            }
            // What another version wrote, or damage left, is shown as it is.
            Err(_) => output::text(line),
        }
    }
}

/// A system of components has no session, but its manager the lock.
fn is_going_on(folder: &ProgramFolder) -> bool {
    folder.has("session") || matches!(folder.lock(), Ok(None))
}
