//! Figure 3: two computations with commits at intervals, and no other commits.

use super::results::{AtInterval, Computation, Log, Swept, Took};
use crate::cpu;
use crate::evaluation::progress::Progress;
use crate::failure::{Failure, Outcome};
use crate::launch::{Launch, Side, Streams};
use crate::user::User;
use crate::workshop::Workshop;
use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::Ordering::Acquire;
use std::time::{Duration, Instant};

/// What Lua runs; its argument says how often.
const SIMULATOR: &str = include_str!("../../../programs/simulator.lua");

/// One that stands for a program of SPEC CINT95.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A compressor of images: the successor of the one that ijpeg was made from.
    Cjpeg,
    /// An interpreter that runs a simulator of a processor, as m88ksim is one.
    Lua,
}

impl Kind {
    pub const ALL: [Self; 2] = [Self::Cjpeg, Self::Lua];

    pub fn name(self) -> &'static str {
        match self {
            Self::Cjpeg => "cjpeg",
            Self::Lua => "lua5.4",
        }
    }

    fn what(self) -> &'static str {
        match self {
            Self::Cjpeg => "compresses an image progressively, with the C code of the library",
            Self::Lua => "simulates a processor whose program sieves primes",
        }
    }

    fn argv(self, workshop: &Workshop, seed: u64, quick: bool) -> Outcome<Vec<OsString>> {
        let program = Path::new("/usr/bin").join(self.name());
        if !program.exists() {
            return Err(Failure::NotHere(format!("{} is not installed; run `make install-deps`", program.display())));
        }
        let file = |name: &str, make: &dyn Fn() -> Vec<u8>| {
            let path = workshop.work(User::Own).join(name);
            if path.exists() {
                Ok(path)
            } else {
                workshop.put(User::Own, name, &make())
            }
        };
        let mut words = vec![program.into_os_string()];
        match self {
            Self::Cjpeg => {
                let picture = file("image.ppm", &|| image(seed, quick))?;
                words.extend(["-progressive", "-quality", "90", "-outfile", "/dev/null"].map(OsString::from));
                words.push(picture.into());
            }
            Self::Lua => {
                words.push(file("simulator.lua", &|| SIMULATOR.into())?.into());
                words.push(if quick { "8" } else { "55" }.into());
            }
        }
        Ok(words)
    }
}

/// Intervals in milliseconds.
pub fn intervals(quick: bool) -> &'static [u64] {
    if quick {
        &[50, 500]
    } else {
        &[10, 50, 100, 500, 1000, 2000]
    }
}

/// What a pair of runs takes, roughly.
fn length(quick: bool) -> Duration {
    Duration::from_millis(if quick { 1400 } else { 9000 })
}

/// Tenths of a second that all rounds of one take.
pub fn tenths(rounds: usize, quick: bool) -> u64 {
    (rounds * intervals(quick).len()) as u64 * length(quick).as_millis() as u64 / 100
}

/// All rounds of one.
pub fn measure(
    kind: Kind,
    seed: u64,
    rounds: usize,
    quick: bool,
    workshop: &Workshop,
    progress: &Progress,
) -> Computation {
    let mut computation = Computation {
        name: kind.name().into(),
        what: kind.what().into(),
        rounds: Vec::new(),
        obstacle: None,
        conditions: String::new(),
    };
    for number in 0..rounds {
        progress.say(format!("{}, round {} of {rounds}", kind.name(), number + 1));
        let argv = kind.argv(workshop, seed, quick);
        match argv.and_then(|argv| round(&argv, number, quick, workshop, progress)) {
            Ok((swept, conditions)) => {
                computation.rounds.push(swept);
                computation.conditions = conditions;
            }
            Err(failure) => {
                computation.obstacle = Some(failure.to_string());
                break;
            }
        }
    }
    computation
}

fn round(
    argv: &[OsString],
    number: usize,
    quick: bool,
    workshop: &Workshop,
    progress: &Progress,
) -> Outcome<(Swept, String)> {
    let (mut pairs, mut said) = (Vec::new(), String::new());
    for (n, &interval_ms) in intervals(quick).iter().enumerate() {
        // Each side goes first at every other interval, and the next time at the others.
        let mut first = if (number + n) % 2 == 0 { Some(native(argv, workshop)?) } else { None };
        let (took, commits, log, conditions) = protected(argv, interval_ms, workshop)?;
        let native = match first.take() {
            Some(took) => took,
            None => native(argv, workshop)?,
        };
        pairs.push(AtInterval { interval_ms, native, protected: took, commits, log });
        said = conditions;
        progress.passed(length(quick));
    }
    Ok((Swept { pairs }, said))
}

/// Runs to the end; `then` is told of the run while it lasts, and of its end.
fn run<T>(
    argv: &[OsString],
    side: Side,
    workshop: &Workshop,
    until_end: impl FnOnce(crate::running::Running) -> Outcome<T>,
) -> Outcome<(Took, T)> {
    let launch = Launch { workshop, user: User::Own, side, argv: argv.to_vec() };
    let streams = Streams { input: Stdio::null(), output: Stdio::null(), errors: Stdio::piped() };
    let (before, began) = (cpu::used_by_ended()?, Instant::now());
    // SPEC's programs are plain C, and so is the library without its vector code.
    let running = launch.start_with(streams, |command| {
        command.env("JSIMD_FORCENONE", "1");
    })?;
    let told = until_end(running)?;
    let elapsed = began.elapsed();
    let processor = cpu::used_by_ended()? - before;
    Ok((Took { elapsed_ms: elapsed.as_secs_f64() * 1e3, processor_ms: processor.as_secs_f64() * 1e3 }, told))
}

fn native(argv: &[OsString], workshop: &Workshop) -> Outcome<Took> {
    Ok(run(argv, Side::Native, workshop, |running| running.finish().map(|_| ()))?.0)
}

fn protected(argv: &[OsString], interval_ms: u64, workshop: &Workshop) -> Outcome<(Took, u64, Log, String)> {
    let interval = format!("{interval_ms}ms");
    let options = ["--commit", "manual", "--every", &interval];
    let (took, (commits, log, conditions)) = run(argv, Side::Protected(&options), workshop, |mut running| {
        let first = running.first_commit()?;
        let status = running.wait()?;
        running.must_succeed(status)?;
        let control = running.session()?.control();
        let commits = control.commits.load(Acquire) - first[0];
        let bytes = control.log_bytes.load(Acquire) - first[1];
        let log = Log { bytes, largest: control.log_largest.load(Acquire) };
        Ok((commits, log, running.conditions()?.to_string()))
    })?;
    Ok((took, commits, log, conditions))
}

/// A picture of soft waves and some grain: neither trivial nor hopeless to compress.
fn image(seed: u64, quick: bool) -> Vec<u8> {
    let (width, height) = if quick { (1600, 1200) } else { (6000, 4000) };
    let mut random = fastrand::Rng::with_seed(seed);
    let mut picture = format!("P6\n{width} {height}\n255\n").into_bytes();
    for y in 0..height as u32 {
        for x in 0..width as u32 {
            let wave = (x * x / 900 + y * y / 700 + x * y / 1100) % 256;
            let grain = random.u32(..) & 0x1f_1f_1f;
            picture.extend([0, 8, 16].map(|shift| (wave / 2 + (grain >> shift & 31) * 3 + shift) as u8));
        }
    }
    picture
}
