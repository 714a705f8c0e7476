//! What is typed, and when the process is killed.

/// One thing that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A line is typed, with the enter key, and its answer awaited.
    Line(&'static str),
    /// Keys are typed; nothing is awaited but that they are shown.
    Keys(&'static str),
    /// A line is typed whose answer takes a while.
    Compute(&'static str),
    /// SIGKILL, and it is waited until the program runs again.
    Kill,
    /// The same while a computation is under way.
    KillComputing,
    /// The answer of a computation is awaited.
    Answer,
}

use Step::{Answer, Compute, Keys, Kill, KillComputing, Line};

/// The conversation. State of every kind is built up before a kill and asked for behind it.
pub const SCRIPT: &[Step] = &[
    Line("name = 'Ada'; primes = [p for p in range(2, 50) if all(p % q for q in range(2, p))]"),
    Kill,
    Line("f'{name} knows {len(primes)} primes, {sum(primes)} in all'"),
    Line("import random; random.seed(1843); numbers = (random.randrange(1000) for _ in range(99))"),
    Line("next(numbers), next(numbers)"),
    Kill,
    Line("next(numbers), next(numbers)"),
    Kill,
    Kill,
    Keys("print(name, 'was killed in the middle "),
    Kill,
    Line("of a line')"),
    Compute("sum(n * n % 7 for n in range(25_000_000))"),
    KillComputing,
    KillComputing,
    KillComputing,
    Answer,
    Line("name, primes[-1], next(numbers)"),
    Kill,
];

/// How often the process is killed.
pub fn kills() -> usize {
    SCRIPT.iter().filter(|step| matches!(step, Kill | KillComputing)).count()
}
