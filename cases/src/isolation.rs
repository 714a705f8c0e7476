//! Runs a test in a process of its own, so that a hang, a crash or a leaked process stays its own.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::failure::{Failure, Outcome, Tried};
use crate::launch::programs;
use crate::report::Report;
use crate::room;

/// Copies of every executable the tests need, in a place that an ordinary user can reach
/// (a checkout in somebody's home often is not).
pub struct Workshop {
    dir: TempDir,
    outlast: PathBuf,
    one_case: PathBuf,
}

/// The one program in Rust, which Cargo builds beside this crate's tools.
const TOKIO: &str = "tokio_server";

/// How one test is to be run.
pub struct Order<'a> {
    pub name: &'a str,
    pub seed: u64,
    pub blows: u32,
    pub limit: Duration,
    pub mutant: Option<&'a str>,
}

impl Workshop {
    /// Copies `outlast`, this crate's launcher and its programs; `one_case` runs a test.
    pub fn new(outlast: &Path, confine: &Path, one_case: &Path) -> Outcome<Workshop> {
        if !outlast.is_file() {
            let text = format!("{} is not there: run `make build`, or set OUTLAST_BIN", outlast.display());
            return Err(Failure::Told(text));
        }
        let dir = tempfile::Builder::new().prefix("outlast-cases.").tempdir().tried("make a directory")?;
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).tried_on("open", dir.path())?;
        let copy = |from: &Path, name: &str| fs::copy(from, dir.path().join(name)).map(drop).tried_on("copy", from);
        let name = outlast.file_name().unwrap_or_default().to_string_lossy().into_owned();
        copy(outlast, &name)?;
        copy(confine, "confine")?;
        let bench = dir.path().join("programs");
        fs::create_dir(&bench).tried_on("make", &bench)?;
        for program in fs::read_dir(programs()).tried_on("list", &programs())? {
            let program = program.tried("list the programs")?;
            copy(&program.path(), &format!("programs/{}", program.file_name().to_string_lossy()))?;
        }
        copy(&one_case.with_file_name(TOKIO), &format!("programs/{TOKIO}"))?;
        Ok(Workshop { outlast: dir.path().join(name), dir, one_case: one_case.to_path_buf() })
    }

    /// The copy of the binary under test.
    pub fn outlast(&self) -> &Path {
        &self.outlast
    }

    /// Runs one test to its end; its watchdog ends it at the limit.
    pub fn run(&self, order: &Order) -> Outcome<Report> {
        let at = |name: &str| self.dir.path().join(name);
        // Made here, so that it is removed whatever becomes of the test's process.
        let (site, disk) = (room::site()?, room::disk()?);
        let mut command = Command::new(&self.one_case);
        command
            .arg(order.name)
            .env("OUTLAST_SEED", order.seed.to_string())
            .env("OUTLAST_BIN", &self.outlast)
            .env("OUTLAST_CASES_CONFINE", at("confine"))
            .env("OUTLAST_CASES_PROGRAMS", at("programs"))
            .env("OUTLAST_CASES_SITE", site.path())
            .env("OUTLAST_CASES_DISK", disk.path())
            .env("OUTLAST_CASES_BLOWS", order.blows.to_string())
            .env("OUTLAST_CASES_LIMIT", order.limit.as_secs().to_string())
            .env_remove("OUTLAST_CASES_MUTANT")
            .stdin(Stdio::null());
        if let Some(mutant) = order.mutant {
            command.env("OUTLAST_CASES_MUTANT", mutant);
        }
        let output = command.output().tried("run one-case")?;
        let text = String::from_utf8_lossy(&output.stdout);
        match text.lines().find_map(Report::parse) {
            Some(report) if output.status.success() => Ok(report),
            _ => Err(Failure::Told(format!("{text}{}({})", String::from_utf8_lossy(&output.stderr), output.status))),
        }
    }
}

/// The seed of one test: the run's seed and the test's name.
pub fn seed_of(base: u64, name: &str) -> u64 {
    // FNV-1a: stable over releases, unlike the standard library's hash.
    name.bytes().fold(base ^ 0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}
