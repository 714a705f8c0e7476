//! Losses of power: a machine is switched off again and again while a program keeps its ledger, and booted again.

use crate::disk::Disk;
use crate::guest::{Guest, Kernel};
use crate::oracle::{self, Stretch};
use fastrand::Rng;
use std::error::Error;
use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Bytes of the disk.
const DISK: u64 = 256 << 20;

/// Which losses there were, and what they cost.
#[derive(Default)]
pub struct Tally {
    pub losses: u32,
    pub flushes: u64,
    pub cached: usize,
    pub lost: usize,
    pub repeated: usize,
    /// How long before a loss of power the first line was told that came again.
    pub oldest: Duration,
}

/// What may be told again after a loss of power.
pub struct Repeatable {
    /// So many lines at most.
    pub lines: usize,
    /// And only those that were told so long before it.
    pub within: Option<Duration>,
}

/// One program from its start to its end, with so many losses of power in between.
pub fn round(
    room: &Path,
    kernels: &[Kernel],
    seed: u64,
    losses: u32,
    lines: usize,
    repeatable: &Repeatable,
) -> Result<Tally, Box<dyn Error>> {
    let mut random = Rng::with_seed(seed);
    let image = room.join("image");
    File::create(&image)?.set_len(DISK)?;
    let made = Command::new("mkfs.ext4").args(["-q", "-F", "-E", "lazy_itable_init=0"]).arg(&image).status()?;
    if !made.success() {
        return Err("mkfs.ext4 failed: is e2fsprogs there?".into());
    }
    let disk = Arc::new(Mutex::new(Disk::new(File::options().read(true).write(true).open(&image)?)));
    let (ledger, mut tally, mut told) = (oracle::ledger(lines), Tally::default(), 0);
    let mut times: Vec<Instant> = Vec::new();
    let mut lost_at = Instant::now();
    for boot in 0.. {
        let kernel = &kernels[boot % kernels.len()];
        let mut guest = Guest::boot(room, kernel, &disk)?;
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
