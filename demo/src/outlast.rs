//! `outlast` as its users meet it: the command line, nothing else.

use crate::failure::{Failure, Outcome, Tried};
use serde::Deserialize;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// The program under one name.
pub struct Outlast {
    executable: PathBuf,
    pub name: String,
}

/// A line of `outlast log --json`.
#[derive(Clone, Debug, Deserialize)]
pub struct Entry {
    pub event: String,
    pub duration_us: Option<f64>,
}

/// A program in `outlast ps --json`.
#[derive(Clone, Debug, Deserialize)]
pub struct Status {
    name: String,
    pub pid: Option<i32>,
    pub commits: u64,
    pub degradations: Vec<String>,
}

/// How long a recovery may take to be logged.
const PATIENCE: Duration = Duration::from_secs(10);

impl Outlast {
    /// The one that was built with this program.
    pub fn find() -> Outcome<Self> {
        let own = std::env::current_exe().tried("find this program's file")?;
        let executable = own.with_file_name("outlast");
        match executable.exists() {
            true => Ok(Self { executable, name: format!("demo-{}", std::process::id()) }),
            false => Err(Failure::NoOutlast(executable.display().to_string())),
        }
    }

    /// A command that runs `argv` protected, and commits now and then while it computes.
    pub fn run(&self, argv: &[&str]) -> Command {
        let mut command = Command::new(&self.executable);
        command.args(["run", "--name", &self.name, "--every", "50ms", "--"]).args(argv);
        command
    }

    fn ask(&self, args: &[&str]) -> Outcome<String> {
        let output = Command::new(&self.executable).args(args).output().tried("start outlast")?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => {
                let said = String::from_utf8_lossy(&output.stderr).trim().to_string();
                Err(Failure::Command(args.join(" "), said))
            }
        }
    }

    /// `outlast ps`.
    pub fn status(&self) -> Outcome<Status> {
        let text = self.ask(&["ps", "--json", "--all"])?;
        let unreadable = |e: serde_json::Error| Failure::Command("ps --json".into(), e.to_string());
        let all: Vec<Status> = serde_json::from_str(&text).map_err(unreadable)?;
        let ours = all.into_iter().find(|status| status.name == self.name);
        ours.ok_or_else(|| Failure::Command("ps --json".into(), format!("{} is not listed", self.name)))
    }

    /// `outlast log`.
    pub fn log(&self) -> Outcome<Vec<Entry>> {
        let text = self.ask(&["log", &self.name, "--json"])?;
        let entry = |line: &str| serde_json::from_str(line).ok();
        Ok(text.lines().filter_map(entry).collect())
    }

    /// Waits for the `n`th recovery, and tells how long it took: from the death to the next instruction.
    pub fn await_recovery(&self, n: usize) -> Outcome<Duration> {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            let log = self.log()?;
            let recovery = log.iter().filter(|entry| entry.event == "recovered").nth(n - 1);
            if let Some(took) = recovery.and_then(|entry| entry.duration_us) {
                return Ok(Duration::from_nanos((took * 1e3) as u64));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Err(Failure::NotRecovered(n, PATIENCE.as_secs(), self.name.clone()))
    }

    /// Forgets the program; what happened to it stays known if anything was wrong.
    pub fn forget(&self) -> Outcome<()> {
        self.ask(&["rm", &self.name]).map(|_| ())
    }
}
