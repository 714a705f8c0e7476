//! In which phase of the program kills landed.

use std::fmt;

use outlast_image::event::phase;

/// Kills per phase.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    counts: [u32; phase::NAMES.len()],
    /// Kills at a phase number that has no name.
    strange: u32,
}

impl Histogram {
    pub fn count(&mut self, phase: usize) {
        match self.counts.get_mut(phase) {
            Some(count) => *count += 1,
            None => self.strange += 1,
        }
    }

    /// Adds a kill by the phase's name; false if there is no such phase.
    pub fn count_name(&mut self, name: &str) -> bool {
        let index = phase::NAMES.iter().position(|n| *n == name);
        self.count(index.unwrap_or(usize::MAX));
        index.is_some()
    }

    pub fn add(&mut self, other: &Histogram) {
        for (sum, count) in self.counts.iter_mut().zip(other.counts) {
            *sum += count;
        }
        self.strange += other.strange;
    }

    pub fn total(&self) -> u32 {
        self.counts.iter().sum::<u32>() + self.strange
    }

    /// Kills in a phase.
    pub fn of(&self, phase: u32) -> u32 {
        self.counts[phase as usize]
    }

    /// Phases in which no kill landed.
    pub fn empty_phases(&self) -> Vec<&'static str> {
        phase::NAMES.iter().zip(self.counts).filter(|(_, count)| *count == 0).map(|(name, _)| *name).collect()
    }

    /// The inverse of `Display`: "name=count …".
    pub fn parse(text: &str) -> Histogram {
        let mut histogram = Histogram::default();
        for (name, count) in text.split_whitespace().filter_map(|word| word.split_once('=')) {
            let count = count.parse().unwrap_or(0);
            match phase::NAMES.iter().position(|n| *n == name) {
                Some(index) => histogram.counts[index] += count,
                None => histogram.strange += count,
            }
        }
        histogram
    }
}

impl fmt::Display for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, count) in phase::NAMES.iter().zip(self.counts) {
            write!(f, "{name}={count} ")?;
        }
        write!(f, "strange={}", self.strange)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_back_what_it_prints() {
        let mut histogram = Histogram::default();
        histogram.count(phase::FOLD as usize);
        assert!(histogram.count_name("operation"));
        assert!(!histogram.count_name("lunch"));
        assert_eq!(Histogram::parse(&histogram.to_string()), histogram);
        assert_eq!(histogram.total(), 3);
        assert!(!histogram.empty_phases().contains(&"fold"));
    }
}
