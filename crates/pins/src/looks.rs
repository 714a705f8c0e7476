//! When a program is looked at: for each pin that does so as often as modules want it, and not at all for the others.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// No look sooner after the last: a module must not have the supervisor do nothing else.
const LEAST: Duration = Duration::from_millis(10);

struct Turn {
    /// For each module that wants it.
    by: BTreeMap<String, Duration>,
    due: Instant,
}

impl Turn {
    /// The one who wants it most often counts.
    fn every(&self) -> Duration {
        self.by.values().copied().min().unwrap_or(Duration::MAX)
    }
}

/// By the names of pins.
pub struct Looks {
    turns: BTreeMap<&'static str, Turn>,
    /// What intervals are varied by.
    random: u64,
}

impl Default for Looks {
    fn default() -> Self {
        Self { turns: BTreeMap::new(), random: u64::from(std::process::id()) << 32 | 0x9e37_79b9 }
    }
}

impl Looks {
    /// At least so often from now on, for the module `by`.
    pub fn want(&mut self, pin: &'static str, by: &str, every: Duration) {
        let (every, now) = (every.max(LEAST), Instant::now());
        let turn = self.turns.entry(pin).or_insert_with(|| Turn { by: BTreeMap::new(), due: now + every });
        turn.by.insert(by.into(), every);
        turn.due = turn.due.min(now + turn.every());
    }

    /// This module wants none any more.
    pub fn forget(&mut self, by: &str) {
        self.turns.retain(|_, turn| {
            turn.by.remove(by);
            !turn.by.is_empty()
        });
    }

    /// No more.
    pub fn end(&mut self, pin: &str) {
        self.turns.remove(pin);
    }

    /// How long until the next one, if there is to be one.
    pub fn until_next(&self) -> Option<Duration> {
        let next = self.turns.values().map(|turn| turn.due).min()?;
        Some(next.saturating_duration_since(Instant::now()))
    }

    /// The pins whose turn it is; it will be again after their interval.
    pub fn due(&mut self) -> Vec<&'static str> {
        if self.turns.is_empty() {
            return Vec::new();
        }
        let now = Instant::now();
        let mut due = Vec::new();
        for (pin, turn) in &mut self.turns {
            if turn.due <= now {
                // Not at even distances: see `Watch`. The generator is Marsaglia's xorshift.
                self.random ^= self.random << 13;
                self.random ^= self.random >> 7;
                self.random ^= self.random << 17;
                turn.due = now + turn.every().mul_f64(0.75 + (self.random >> 11) as f64 / (1u64 << 54) as f64);
                due.push(*pin);
            }
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_who_wants_it_most_often_counts_until_nobody_does() {
        let mut looks = Looks::default();
        assert_eq!((looks.until_next(), looks.due()), (None, vec![]));
        looks.want("a", "one", Duration::from_secs(60));
        looks.want("a", "other", Duration::from_secs(30));
        looks.want("a", "third", Duration::from_secs(90));
        assert!(looks.until_next().is_some_and(|next| next <= Duration::from_secs(30)));
        assert_eq!(looks.due(), Vec::<&str>::new());
        looks.forget("other");
        assert_eq!(looks.turns["a"].every(), Duration::from_secs(60));
        looks.forget("one");
        looks.forget("third");
        assert_eq!(looks.until_next(), None);
        looks.want("a", "one", Duration::from_secs(60));
        looks.end("a");
        assert_eq!(looks.until_next(), None);
    }

    #[test]
    fn intervals_vary_around_what_is_wanted() {
        let mut looks = Looks::default();
        for n in 0..1000 {
            let by = [("one".to_string(), Duration::from_secs(100))].into();
            looks.turns.insert("a", Turn { by, due: Instant::now() });
            assert_eq!(looks.due(), ["a"], "{n}");
            let next = looks.until_next().unwrap();
            assert!(next > Duration::from_secs(74) && next <= Duration::from_secs(125), "{next:?}");
        }
    }

    #[test]
    fn nobody_has_it_look_without_end() {
        let mut looks = Looks::default();
        looks.want("a", "one", Duration::ZERO);
        assert_eq!(looks.turns["a"].every(), LEAST);
    }
}
