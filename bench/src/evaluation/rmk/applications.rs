//! Table 8: three programs under checkpoints at intervals, of this project's module and of others' kinds.

use super::results::{Application, Pages, Round, Work};
use super::web::{installed, Site};
use super::Extent;
use crate::cpu;
use crate::evaluation::discount_checking::commits;
use crate::evaluation::discount_checking::results::Pattern;
use crate::evaluation::progress::Progress;
use crate::failure::{Failure, Outcome, Tried};
use crate::launch::{Launch, Side, Streams};
use crate::running::Running;
use crate::user::User;
use crate::workshop::Workshop;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering::Acquire;
use std::time::{Duration, Instant};

/// One program of the table, or the nearest that Debian has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Program {
    Gzip,
    Network,
    Web,
}

/// Who makes the checkpoints.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    Native,
    Protected,
    /// By a library that is loaded before the program; the word says how.
    Library(&'static str),
}

const SIMULATION: &str = include_str!("../../../programs/network.cc");
/// How many clients load the server.
const CLIENTS: u32 = 20;
/// Between these numbers of pages the price of one is taken.
const FEW: u64 = 256;
const MANY: u64 = 4096;
/// In a short run.
const NOT_SO_MANY: u64 = 512;

/// What one run left.
struct Ran {
    work: Work,
    lines: Vec<(f64, Pages, Pages)>,
    commits: u64,
    log_bytes: u64,
    conditions: String,
}

impl Program {
    pub const ALL: [Self; 3] = [Self::Gzip, Self::Web, Self::Network];

    fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Network => "ns-3",
            Self::Web => "lighttpd",
        }
    }

    fn what(self) -> &'static str {
        match self {
            Self::Gzip => "compresses the libraries of this system",
            Self::Network => "24 routers, 48 links and 24 TCP connections that send without pause, simulated",
            Self::Web => "20 clients ask for small pages without pause",
        }
    }

    /// The command of one that runs to its end.
    fn argv(self, workshop: &Workshop, extent: Extent) -> Outcome<Vec<OsString>> {
        match self {
            Self::Gzip => Ok(vec!["/bin/gzip".into(), "-9".into(), "-c".into(), libraries(workshop, extent)?.into()]),
            Self::Network => {
                let seconds = if extent.quick { "0.15" } else { "4" };
                Ok(vec![simulator(workshop)?.into(), seconds.into()])
            }
            Self::Web => Err(Failure::NotHere("a server has no end".into())),
        }
    }
}

/// Seconds that one run takes, roughly.
pub fn length(quick: bool) -> Duration {
    Duration::from_secs(if quick { 1 } else { 12 })
}

fn interval_ms(quick: bool) -> u64 {
    if quick {
        50
    } else {
        2000
    }
}

/// Tenths of a second that all rounds of one take.
pub fn tenths(rounds: usize, quick: bool) -> u64 {
    rounds as u64 * length(quick).as_secs() * 50
}

pub fn measure(
    program: Program,
    extent: Extent,
    rounds: usize,
    workshop: &Workshop,
    progress: &Progress,
) -> Application {
    let mut application = Application {
        name: program.name().into(),
        what: program.what().into(),
        interval_ms: interval_ms(extent.quick),
        ..Application::default()
    };
    for number in 0..rounds {
        progress.say(format!("Table 8, {}, round {} of {rounds}", program.name(), number + 1));
        match round(program, extent, number, workshop, progress) {
            Ok((round, conditions)) => {
                application.rounds.push(round);
                application.conditions = conditions;
            }
            Err(failure) => {
                application.obstacle = Some(failure.to_string());
                break;
            }
        }
    }
    application
}

fn round(
    program: Program,
    extent: Extent,
    number: usize,
    workshop: &Workshop,
    progress: &Progress,
) -> Outcome<(Round, String)> {
    let mut round = Round::default();
    let mut conditions = String::new();
    let mut all = [How::Native, How::Protected, How::Library("fork"), How::Library("dump"), How::Library("count")];
    // Whatever changes with time shall not always meet the same one.
    let first = number % all.len();
    all.rotate_left(first);
    for how in all {
        let ran = run(program, how, extent, workshop)?;
        // Whoever has just begun has no page ready, neither to share nor to copy to.
        let settled = || ran.lines.iter().skip(1);
        match how {
            How::Native => round.native = ran.work,
            How::Protected => {
                (round.protected, round.commits, round.log_bytes) = (ran.work, ran.commits, ran.log_bytes);
                conditions = ran.conditions;
            }
            How::Library("fork") => {
                (round.shadow, round.shadow_ms) = (ran.work, settled().map(|line| line.0).collect());
            }
            How::Library("dump") => (round.dump, round.dump_ms) = (ran.work, settled().map(|line| line.0).collect()),
            How::Library(_) => {
                round.armed_ms = settled().map(|line| line.0).collect();
                round.present = settled().map(|line| line.1).collect();
                round.written = settled().map(|line| line.2).collect();
            }
        }
        progress.passed(length(extent.quick));
    }
    let added = |pages| -> Outcome<f64> {
        let ([native, protected], _) = commits::pair(Pattern::Cold, pages, number, workshop)?;
        Ok((protected - native) / 1e3)
    };
    let many = if extent.quick { NOT_SO_MANY } else { MANY };
    round.a_page_us = (added(many)? - added(FEW)?) / (many - FEW) as f64;
    Ok((round, conditions))
}

/// Where the library leaves what its checkpoints were.
fn checkpoints(workshop: &Workshop) -> PathBuf {
    workshop.work(User::Own).join("checkpoints")
}

/// The environment of a program before which the library is loaded (`libcheckpoint.c`), that it makes checkpoints in this way.
pub fn library(how: &str, interval_ms: u64, workshop: &Workshop) -> Vec<(&'static str, OsString)> {
    vec![
        ("LD_PRELOAD", workshop.executable("libcheckpoint.so").into()),
        ("CHECKPOINT", how.into()),
        ("CHECKPOINT_MS", interval_ms.to_string().into()),
        ("CHECKPOINT_RESULT", checkpoints(workshop).into()),
    ]
}

fn run(program: Program, how: How, extent: Extent, workshop: &Workshop) -> Outcome<Ran> {
    let result = checkpoints(workshop);
    // Of the run before.
    let _ = fs::remove_file(&result);
    let interval = interval_ms(extent.quick);
    let every = format!("{interval}ms");
    let options = ["--commit", "manual", "--every", &every];
    let side = if how == How::Protected { Side::Protected(&options) } else { Side::Native };
    let env = match how {
        How::Library(word) => library(word, interval, workshop),
        _ => Vec::new(),
    };
    let counters = |running: &mut Running| -> Outcome<[u64; 2]> {
        match how {
            How::Protected => {
                let control = running.session()?.control();
                Ok([control.commits.load(Acquire), control.log_bytes.load(Acquire)])
            }
            _ => Ok([0, 0]),
        }
    };
    let (work, before, after, conditions);
    if program == Program::Web {
        let mut server = Site::make(workshop, extent.seed)?.serve(workshop, side, &env)?;
        before = counters(&mut server.running)?;
        work = server.load(workshop, CLIENTS, length(extent.quick), extent.seed)?.1;
        after = counters(&mut server.running)?;
        conditions = server.running.conditions()?.to_string();
        server.end()?;
    } else {
        let launch = Launch { workshop, user: User::Own, side, argv: program.argv(workshop, extent)? };
        let streams = Streams { input: Stdio::null(), output: Stdio::null(), errors: Stdio::piped() };
        let (used, began) = (cpu::used_by_ended()?, Instant::now());
        let mut running = launch.start_with(streams, |command| {
            command.envs(env);
        })?;
        before = if how == How::Protected { running.first_commit()? } else { [0, 0] };
        let status = running.wait()?;
        running.must_succeed(status)?;
        let (elapsed, processor) = (began.elapsed(), cpu::used_by_ended()? - used);
        work =
            Work { elapsed_ms: elapsed.as_secs_f64() * 1e3, processor_ms: processor.as_secs_f64() * 1e3, units: 1.0 };
        after = counters(&mut running)?;
        conditions = running.conditions()?.to_string();
    }
    let lines = match how {
        How::Library(_) => read_lines(&result)?,
        _ => Vec::new(),
    };
    let [commits, log_bytes] = [0, 1].map(|n| after[n].saturating_sub(before[n]));
    Ok(Ran { work, lines, commits, log_bytes, conditions })
}

/// What the library left: milliseconds, pages there, pages written.
fn read_lines(result: &Path) -> Outcome<Vec<(f64, Pages, Pages)>> {
    let text = fs::read_to_string(result).tried_on(result)?;
    let line = |line: &str| {
        let numbers: Vec<u64> = line.split(' ').map(str::parse).collect::<Result<_, _>>().ok()?;
        let pages = |from: usize| -> Option<Pages> {
            let found: Vec<u32> = numbers.get(from..from + 6)?.iter().map(|n| *n as u32).collect();
            found.try_into().ok()
        };
        Some((numbers[0] as f64 / 1e6, pages(1)?, pages(7)?))
    };
    let lines: Option<Vec<_>> = text.lines().map(line).collect();
    let lines = lines.ok_or_else(|| Failure::Unreadable("libcheckpoint".into(), text.clone()))?;
    // With one alone nothing is left when the first is passed over.
    match lines.len() {
        0 | 1 => Err(Failure::Unreadable("libcheckpoint".into(), format!("{} checkpoints", lines.len()))),
        _ => Ok(lines),
    }
}

/// A file that gzip works on for so long: libraries of this system, one after the other.
fn libraries(workshop: &Workshop, extent: Extent) -> Outcome<PathBuf> {
    let path = workshop.work(User::Own).join("libraries");
    if path.exists() {
        return Ok(path);
    }
    let folder = Path::new("/usr/lib/x86_64-linux-gnu");
    let entries = fs::read_dir(folder).tried_on(folder)?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|file| file.is_file() && !file.is_symlink());
    files.sort();
    let wanted = if extent.quick { 6 << 20 } else { 200 << 20 };
    let mut all = Vec::new();
    for file in files.iter().cycle().take(files.len() * 50) {
        if all.len() >= wanted {
            break;
        }
        // One that may not be read is left out.
        all.extend(fs::read(file).unwrap_or_default());
    }
    workshop.put(User::Own, "libraries", &all)
}

/// The simulation, compiled with the system's ns-3.
fn simulator(workshop: &Workshop) -> Outcome<PathBuf> {
    let program = workshop.executable("network");
    if program.exists() {
        return Ok(program);
    }
    installed("/usr/include/ns3/core-module.h")?;
    let source = workshop.put(User::Own, "network.cc", SIMULATION.as_bytes())?;
    let libraries =
        ["core", "network", "internet", "point-to-point", "applications", "stats", "bridge", "traffic-control"];
    let output = Command::new("g++")
        .args(["-std=c++17", "-O2", "-o"])
        .arg(&program)
        .arg(&source)
        .args(libraries.map(|name| format!("-lns3-{name}")))
        .output()
        .tried("run g++")?;
    match output.status.success() {
        true => Ok(program),
        false => Err(Failure::NotHere(format!("ns-3: {}", String::from_utf8_lossy(&output.stderr).trim()))),
    }
}
