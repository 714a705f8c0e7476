//! Losses of power: a machine is switched off again and again while a program keeps its ledger, and booted again.

use crate::boot::{self, Life};
use crate::disk::Disk;
use crate::guest::{Guest, Kernel, PLAIN};
use crate::oracle::{self, Stretch};
use fastrand::Rng;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Bytes of the disk.
const DISK: u64 = 256 << 20;

/// Switch machines off in the middle of everything, and boot them again
#[derive(clap::Args)]
pub struct Arguments {
    /// Folders with an unpacked kernel package each; boots take turns
    #[arg(long, required = true)]
    kernel: Vec<PathBuf>,
    /// Machines, each from the program's start to its end
    #[arg(long, default_value_t = 3)]
    machines: u32,
    /// Losses of power for each
    #[arg(long, default_value_t = 8)]
    losses: u32,
    /// Makes the choices the same again (not the moments at which they meet the program)
    #[arg(long)]
    seed: Option<u64>,
    /// Lines of the ledger that each keeps
    #[arg(long, default_value_t = 2000)]
    lines: usize,
    /// Options of `outlast run`
    #[arg(long, default_value = "--durable", allow_hyphen_values = true)]
    options: String,
    /// Lines of the ledger that may be told again after a loss of power
    #[arg(long, default_value_t = 1)]
    repeatable: usize,
    /// The program has a file of its own for every so many-th line: what it does to names has commits on the medium at once
    #[arg(long, default_value_t = 1)]
    pages: usize,
    /// Seconds before a loss of power: lines told earlier may not be told again  [default: any may, of those that may at all]
    #[arg(long)]
    within: Option<f64>,
    /// The outlast to test
    #[arg(long, default_value = "target/release/outlast")]
    outlast: PathBuf,
}

/// Machine after machine.
pub fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let seed = arguments.seed.unwrap_or_else(crate::seed);
    let room = tempfile::Builder::new().prefix("outlast-lab.").tempdir()?;
    let options = format!("OPTIONS='{}'\nARGUMENTS='{} {}'\n", arguments.options, arguments.lines, arguments.pages);
    let script = include_str!("../lives/ledger");
    let life = Life { script, options: &options, programs: &["ledger"], tools: &[&arguments.outlast] };
    let packages = arguments.kernel.iter().enumerate();
    let kernels =
        packages.map(|(n, package)| boot::prepare(room.path(), n, package, &life)).collect::<Result<Vec<_>, _>>()?;
    let within = arguments.within.map(Duration::try_from_secs_f64).transpose()?;
    let repeatable = Repeatable { lines: arguments.repeatable, within };
    let mut all = Tally::default();
    for machine in 0..arguments.machines {
        let own = seed.wrapping_add(u64::from(machine));
        let tally = round(room.path(), &kernels, own, arguments.losses, arguments.lines, &repeatable)
            .map_err(|what| format!("machine {machine}: {what}\nrun it again with --machines 1 --seed {own}"))?;
        println!(
            "machine {machine}, seed {own}: {} losses of power, {} of {} cached sectors lost, {} flushes, {} lines told again, at most {:?} old",
            tally.losses, tally.lost, tally.cached, tally.flushes, tally.repeated, tally.oldest
        );
        (all.losses, all.lost, all.cached) =
            (all.losses + tally.losses, all.lost + tally.lost, all.cached + tally.cached);
    }
    println!(
        "power: {} machines survived {} losses of power ({} of {} cached sectors lost), seed {seed}",
        arguments.machines, all.losses, all.lost, all.cached
    );
    Ok(())
}

/// Which losses there were, and what they cost.
#[derive(Default)]
struct Tally {
    losses: u32,
    flushes: u64,
    cached: usize,
    lost: usize,
    repeated: usize,
    /// How long before a loss of power the first line was told that came again.
    oldest: Duration,
}

/// What may be told again after a loss of power.
struct Repeatable {
    /// So many lines at most.
    lines: usize,
    /// And only those that were told so long before it.
    within: Option<Duration>,
}

/// One program from its start to its end, with so many losses of power in between.
fn round(
    room: &Path,
    kernels: &[Kernel],
    seed: u64,
    losses: u32,
    lines: usize,
    repeatable: &Repeatable,
) -> Result<Tally, Box<dyn Error>> {
    let mut random = Rng::with_seed(seed);
    let disk = Disk::formatted(room, DISK)?;
    let (ledger, mut tally, mut told) = (oracle::ledger(lines), Tally::default(), 0);
    let mut times: Vec<Instant> = Vec::new();
    let mut lost_at = Instant::now();
    for boot in 0.. {
        let kernel = &kernels[boot % kernels.len()];
        let mut guest = Guest::boot(room, kernel, &PLAIN, &disk)?;
        let is_last = boot as u32 >= losses;
        // Somewhere behind what was told, so that there is an end.
        let until = if is_last { usize::MAX } else { 1 + random.u64(..lines as u64 / (losses as u64 + 1)) as usize };
        let mut is_off = guest.await_lines(until)?;
        // In the middle of what a commit writes, or at any moment.
        if !is_off && random.u64(..4) > 0 {
            lock(&disk).light(1 + random.u64(..100));
            is_off = guest.await_that(|_| lock(&disk).is_dead())?;
        } else if !is_off {
            std::thread::sleep(Duration::from_micros(random.u64(..30_000)));
        }
        let console = guest.console();
        let (boot_times, now_off) = (guest.times(), Instant::now());
        let said = if is_off { guest.end()? } else { guest.lose_power()? };
        let Stretch { told: now, repeated } = oracle::check(&ledger, told, repeatable.lines, &said)
            .map_err(|what| format!("boot {boot}: {what}\n--- console ---\n{console}"))?;
        let again = times.split_off(times.len().saturating_sub(repeated));
        if let (Some(within), Some(first)) = (repeatable.within, again.first()) {
            let age = lost_at.duration_since(*first);
            if age > within {
                return Err(format!("boot {boot}: {repeated} lines came again, the first told {age:?} before").into());
            }
            tally.oldest = tally.oldest.max(age);
        }
        times.append(&mut boot_times.lock().unwrap_or_else(PoisonError::into_inner));
        lost_at = now_off;
        (told, tally.repeated) = (now, tally.repeated + repeated);
        if is_off {
            let ended = console.contains("lab: status 0") && told == lines && degradations(&console).is_empty();
            tally.flushes = lock(&disk).flushes;
            return if ended { Ok(tally) } else { Err(format!("boot {boot}: after {told} lines:\n{console}").into()) };
        }
        let (cached, lost) = lock(&disk).lose_power(&mut random)?;
        (tally.losses, tally.cached, tally.lost) = (tally.losses + 1, tally.cached + cached, tally.lost + lost);
    }
    Err("the machine never ended".into())
}

/// What the program's log names, but for what a kernel does not have.
fn degradations(console: &str) -> Vec<&str> {
    console.lines().filter(|line| line.contains("degradation") && !line.contains("no-io-uring")).collect()
}

fn lock(disk: &Mutex<Disk>) -> std::sync::MutexGuard<'_, Disk> {
    disk.lock().unwrap_or_else(PoisonError::into_inner)
}
