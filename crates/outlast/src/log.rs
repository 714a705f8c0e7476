//! `outlast log`: what happened to a program, and what was done.

use crate::{output, state};
use clap::Args;
use outlast_supervisor::log::{Entry, Kind, FILE};
use outlast_supervisor::program_folder::ProgramFolder;
use outlast_supervisor::Error;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::time::Duration;

/// Show what happened to a program, and what was done
#[derive(Args)]
pub struct Log {
    /// The program
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
            Ok(entry) => output::text(&sentence(&entry)),
            // What another version wrote, or damage left, is shown as it is.
            Err(_) => output::text(line),
        }
    }
}

fn is_going_on(folder: &ProgramFolder) -> bool {
    folder.has("session")
}

/// An entry in words.
fn sentence(entry: &Entry) -> String {
    let cause = entry.cause.as_deref().unwrap_or("unknown cause");
    let what = match entry.event {
        Kind::Start => format!("started: {cause}"),
        Kind::Injected => "protected".into(),
        Kind::OomKilled => format!("killed for lack of memory: {cause}"),
        Kind::Killed => format!("died of {cause}"),
        Kind::Recovered => format!("recovered from {cause}"),
        Kind::Crashed => format!("crashed: {cause}"),
        Kind::Rollback => format!("rolled back after {cause}"),
        Kind::Degradation => format!("cannot preserve: {cause}"),
        Kind::Suspended => format!("protection suspended: {cause}"),
        Kind::Exec => format!("became {cause}"),
        Kind::Resumed => format!("resumed from the store after {cause}"),
        Kind::AnchorRenewed => "made a new anchor".into(),
        Kind::GaveUp => format!("gave up: {cause}"),
        Kind::Exit => format!("ended: {cause}"),
        Kind::SupervisorUpgraded => format!("its supervisor is {} now", cause),
        Kind::SupervisorRestarted => "another supervisor took over".into(),
        Kind::EngineError => format!("the engine failed: {cause}"),
        Kind::WentBack => format!("went back to {cause}; what it sent and read since is not undone"),
        Kind::NotKept => format!("cannot keep a generation: {cause}"),
        Kind::ModuleFailed => format!("a module failed: {cause}"),
        Kind::Hung => format!("hangs: {cause}"),
        Kind::Forked => format!("began as a copy of {cause}"),
        Kind::Detached => "detached: it runs on without protection".into(),
        Kind::Attached => format!("attached to: {cause}; it stood still"),
    };
    let phase = entry.phase.as_ref().map(|phase| format!(", in phase {phase}")).unwrap_or_default();
    let took = entry.duration_us.map(|us| format!(" ({us} µs)")).unwrap_or_default();
    let stacks: String = entry.stacks.iter().map(|stack| format!("    {stack}\n")).collect();
    format!("{}  {what}{phase}{took}\n{stacks}", entry.time)
}
