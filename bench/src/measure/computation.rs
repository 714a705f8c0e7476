//! Computations with periodic commits: what they cost in processor time. Elapsed time would measure whoever else uses
//! the machine; the two are the same where nobody does.

use crate::conditions::Conditions;
use crate::cpu;
use crate::failure::Outcome;
use crate::launch::{Launch, Side, Streams};
use crate::measurement::{Collected, Measurement};
use crate::promise::{Promise, Relation, Unit};
use crate::user::User;
use crate::workshop::Workshop;
use std::ffi::OsString;
use std::process::Stdio;

/// A program that computes for seconds.
pub enum Computation {
    Gzip,
    Python,
    OpenMp,
}

/// Intervals with their limits in percent.
const INTERVALS: &[(&str, f64)] = &[("1s", 0.5), ("50ms", 2.0)];
const INTERVALS_OF_THREADS: &[(&str, f64)] = &[("1s", 1.0)];
/// How often the kernels run: about nine seconds of two processors. Whole spans are saved from the third interval on.
const REPEATS: &str = "60";
/// Bytes of text for gzip.
const TEXT: usize = 64 << 20;

/// A sieve, a dictionary and a sort, over and over: about three seconds, some megabytes.
const SCRIPT: &str = "\
def primes(n):
    sieve = bytearray([1]) * n
    for i in range(2, int(n ** 0.5) + 1):
        if sieve[i]:
            sieve[i * i::i] = bytes(len(range(i * i, n, i)))
    return [i for i in range(2, n) if sieve[i]]
total = 0
for turn in range(200):
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

    fn intervals(&self) -> &'static [(&'static str, f64)] {
        match self {
            Self::OpenMp => INTERVALS_OF_THREADS,
            _ => INTERVALS,
        }
    }

    fn argv(&self, workshop: &Workshop) -> Outcome<Vec<OsString>> {
        match self {
            Self::Python => Ok(["python3", "-c", SCRIPT].map(OsString::from).to_vec()),
            Self::OpenMp => Ok(vec![workshop.executable("kernels").into(), REPEATS.into()]),
            Self::Gzip => {
                let text = workshop.work(User::Own).join("text");
                if !text.exists() {
                    workshop.put(User::Own, "text", &text_of(TEXT))?;
                }
                Ok(vec!["gzip".into(), "-kf".into(), text.into()])
            }
        }
    }

    /// Milliseconds of processor time, everything that belongs to it included.
    fn run(&self, workshop: &Workshop, side: Side) -> Outcome<(f64, Conditions)> {
        let launch = Launch { workshop, user: User::Own, side, argv: self.argv(workshop)? };
        let before = cpu::used_by_ended()?;
        let running = launch.start(Streams { input: Stdio::null(), output: Stdio::null(), errors: Stdio::piped() })?;
        let conditions = running.finish()?;
        Ok(((cpu::used_by_ended()? - before).as_secs_f64() * 1e3, conditions))
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
        let promise = |(interval, limit): &(&str, f64)| Promise {
            id: self.id(interval),
            what: format!("{}, a commit every {interval}, processor time", self.word()),
            unit: Unit::Percent,
            relation: Relation::Overhead,
            limit: *limit,
        };
        self.intervals().iter().map(promise).collect()
    }

    fn rounds(&self) -> usize {
        9
    }

    fn round(&mut self, number: usize, workshop: &Workshop, collected: &mut Collected) -> Outcome<()> {
        let mut native = None;
        if number % 2 == 0 {
            native = Some(self.run(workshop, Side::Native)?.0);
        }
        let mut protected = Vec::new();
        for &(interval, _) in self.intervals() {
            let (took, conditions) = self.run(workshop, Side::Protected(&["--every", interval]))?;
            collected.conditions(&conditions);
            collected.note_once(
                &format!("--every {interval}:"),
                format!("--every {interval}: {} commits", conditions.commits),
            );
            protected.push(took);
        }
        let native = match native {
            Some(native) => native,
            None => self.run(workshop, Side::Native)?.0,
        };
        for ((interval, _), took) in self.intervals().iter().zip(protected) {
            collected.add(&self.id(interval), Some(native), took);
        }
        Ok(())
    }
}
