//! Computations with periodic commits: what they cost in processor time.
//!
//! One that is protected and one that is not run at the same time on the same processors, which the kernel gives to both in turns of
//! milliseconds: whoever else uses the machine, and whatever its processors' speed does, concerns both. Each has half of the time, so that an
//! interval of its own work takes two. They run long enough for what happens once, at the start, to count for little.

use crate::conditions::Conditions;
use crate::cpu;
use crate::failure::{Outcome, Tried};
use crate::launch::{Launch, Side, Streams};
use crate::measurement::{Collected, Measurement};
use crate::processors::on_processor;
use crate::promise::{Promise, Relation, Unit};
use crate::running::{Running, LIMIT};
use crate::user::User;
use crate::workshop::Workshop;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use std::ffi::OsString;
use std::process::Stdio;

/// A program that computes for seconds.
pub enum Computation {
    Gzip,
    Python,
    OpenMp,
}

/// Intervals of its own work, what that is where two share the time, and the limits in percent.
const INTERVALS: &[(&str, &str, f64)] = &[("1s", "2s", 0.5), ("50ms", "100ms", 2.0)];
const INTERVALS_OF_THREADS: &[(&str, &str, f64)] = &[("1s", "2s", 1.0)];
/// How often the kernels run: about nine seconds of two processors. Whole spans are saved from the third interval on.
const REPEATS: &str = "300";
/// Bytes of text for gzip.
const TEXT: usize = 192 << 20;
/// The one processor that a computation of one thread has.
const PROCESSOR: usize = 0;

/// A sieve, a dictionary and a sort, over and over: about nine seconds, some megabytes.
const SCRIPT: &str = "\
def primes(n):
    sieve = bytearray([1]) * n
    for i in range(2, int(n ** 0.5) + 1):
        if sieve[i]:
            sieve[i * i::i] = bytes(len(range(i * i, n, i)))
    return [i for i in range(2, n) if sieve[i]]
total = 0
for turn in range(700):
    found = primes(400000)
    ends = {}
    for p in found:
        ends[p % 1000] = ends.get(p % 1000, 0) + p * turn
    total += sum(sorted(ends.values(), key=lambda v: v % 7919))
assert total > 0
";

impl Computation {
    fn word(&self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Python => "python3",
            Self::OpenMp => "openmp",
        }
    }

    fn intervals(&self) -> &'static [(&'static str, &'static str, f64)] {
        match self {
            Self::OpenMp => INTERVALS_OF_THREADS,
            _ => INTERVALS,
        }
    }

    fn argv(&self, workshop: &Workshop, side: Side) -> Outcome<Vec<OsString>> {
        match self {
            Self::Python => Ok(["python3", "-c", SCRIPT].map(OsString::from).to_vec()),
            Self::OpenMp => Ok(vec![workshop.executable("kernels").into(), REPEATS.into()]),
            Self::Gzip => {
                // Each has a file of its own, beside which it writes.
                let name = if side == Side::Native { "text" } else { "text-protected" };
                let text = workshop.work(User::Own).join(name);
                if !text.exists() {
                    workshop.put(User::Own, name, &text_of(TEXT))?;
                }
                Ok(vec!["gzip".into(), "-kf".into(), text.into()])
            }
        }
    }

    fn start(&self, workshop: &Workshop, side: Side) -> Outcome<Running> {
        let argv = self.argv(workshop, side)?;
        let launch = Launch { workshop, user: User::Own, side, argv };
        let streams = Streams { input: Stdio::null(), output: Stdio::null(), errors: Stdio::piped() };
        // Threads that wait for each other in a loop would take from the other program what it is entitled to.
        let start = || {
            launch.start_with(streams, |command| {
                command.env("OMP_WAIT_POLICY", "passive");
            })
        };
        match self {
            Self::OpenMp => start(),
            Self::Gzip | Self::Python => on_processor(PROCESSOR, start),
        }
    }

    /// Milliseconds of processor time that each takes with all that belongs to it, native and protected.
    fn run(&self, workshop: &Workshop, options: &[&str], native_first: bool) -> Outcome<([f64; 2], Conditions)> {
        let start_native = || self.start(workshop, Side::Native);
        let start_protected = || self.start(workshop, Side::Protected(options));
        let (native, mut protected) = if native_first {
            let native = start_native()?;
            (native, start_protected()?)
        } else {
            let protected = start_protected()?;
            (start_native()?, protected)
        };
        protected.session()?;
        let ends = [native.pidfd()?, protected.pidfd()?];
        let limit = Timespec { tv_sec: LIMIT.as_secs() as i64, tv_nsec: 0 };
        let mut ends = ends.each_ref().map(|end| PollFd::new(end, PollFlags::IN));
        poll(&mut ends, Some(&limit)).tried("wait for a program")?;
        let is_native_done = !ends[0].revents().is_empty();
        let before = cpu::used_by_ended()?;
        let (conditions, between) = if is_native_done {
            native.finish()?;
            let between = cpu::used_by_ended()?;
            (protected.finish()?, between)
        } else {
            let conditions = protected.finish()?;
            let between = cpu::used_by_ended()?;
            native.finish()?;
            (conditions, between)
        };
        let took = [between - before, cpu::used_by_ended()? - between].map(|time| time.as_secs_f64() * 1e3);
        let [first, second] = took;
        Ok((if is_native_done { [first, second] } else { [second, first] }, conditions))
    }

    fn id(&self, interval: &str) -> String {
        format!("every-{interval}-{}", self.word())
    }
}

/// Words that a compressor finds neither trivial nor hopeless; always the same ones.
fn text_of(bytes: usize) -> Vec<u8> {
    let mut random: u64 = 88_172_645_463_325_252;
    let mut text = Vec::with_capacity(bytes + 16);
    while text.len() < bytes {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let word = random % 5000;
        text.extend((0..2 + word % 7).map(|i| b'a' + (word * 31 + i * (word % 23 + 1)) as u8 % 26));
        text.push(if random % 97 < 12 { b'\n' } else { b' ' });
    }
    text.truncate(bytes);
    text
}

impl Measurement for Computation {
    fn name(&self) -> String {
        format!("{} with periodic commits", self.word())
    }

    fn promises(&self) -> Vec<Promise> {
        let promise = |(interval, _, limit): &(&str, &str, f64)| Promise {
            id: self.id(interval),
            what: format!("{}, a commit every {interval}, processor time", self.word()),
            unit: Unit::Percent,
            relation: Relation::Overhead,
            limit: *limit,
        };
        self.intervals().iter().map(promise).collect()
    }

    fn rounds(&self) -> usize {
        7
    }

    fn round(&mut self, number: usize, workshop: &Workshop, collected: &mut Collected) -> Outcome<()> {
        for &(interval, shared, _) in self.intervals() {
            let ([native, protected], conditions) = self.run(workshop, &["--every", shared], number % 2 == 0)?;
            collected.conditions(&conditions);
            collected.note_once(
                &format!("--every {interval}:"),
                format!("--every {interval}: {} commits", conditions.commits),
            );
            collected.add(&self.id(interval), Some(native), protected);
        }
        Ok(())
    }
}
