//! How long something takes.

use std::time::{Duration, Instant};

/// Microseconds of one of so many.
pub fn each(count: u32, mut work: impl FnMut()) -> f64 {
    let start = Instant::now();
    (0..count).for_each(|_| work());
    start.elapsed().as_secs_f64() * 1e6 / f64::from(count)
}

/// Microseconds of one, and what the other takes beyond it: they take turns, so that whatever else happens happens to both.
pub fn beside(count: u32, one: impl Fn(), other: impl Fn()) -> (f64, f64) {
    let mut sums = [Duration::ZERO; 2];
    let timed = |work: &dyn Fn()| {
        let start = Instant::now();
        work();
        start.elapsed()
    };
    for turn in 0..count {
        // Who comes first may find the other's traces in caches: they take turns in that, too.
        for which in [turn as usize % 2, 1 - turn as usize % 2] {
            sums[which] += if which == 0 { timed(&one) } else { timed(&other) };
        }
    }
    let [one, other] = sums.map(|sum| sum.as_secs_f64() * 1e6 / f64::from(count));
    (one, other - one)
}

/// What was seen of some things, in microseconds.
pub struct Table(Vec<(String, Vec<f64>)>);

impl Table {
    pub fn new(names: &[&str]) -> Self {
        Self(names.iter().map(|name| (name.to_string(), Vec::new())).collect())
    }

    pub fn note(&mut self, at: usize, micros: f64) {
        self.0[at].1.push(micros);
    }

    pub fn text(mut self, rounds: u32) -> String {
        let mut text = format!(
            "{:<50} {:>8} {:>8} {:>8}  (microseconds, {rounds} rounds)\n",
            "", "quartile", "median", "quartile"
        );
        for (name, values) in &mut self.0 {
            let [low, middle, high] = quartiles(values);
            text.push_str(&format!("{name:<50} {low:>8.2} {middle:>8.2} {high:>8.2}\n"));
        }
        text
    }
}

pub fn quartiles(values: &mut [f64]) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [1, 2, 3].map(|part| values.get(values.len().saturating_sub(1) * part / 4).copied().unwrap_or(f64::NAN))
}
