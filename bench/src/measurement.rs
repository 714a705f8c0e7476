//! Something that is measured in rounds, each a native run and a protected one, and what the rounds collect.

use crate::conditions::Conditions;
use crate::failure::Outcome;
use crate::launch::Side;
use crate::promise::{Pair, Promise, Report};
use crate::workshop::Workshop;

/// One or several promises that the same runs show.
pub trait Measurement {
    /// For the progress bar.
    fn name(&self) -> String;
    fn promises(&self) -> Vec<Promise>;
    /// How many pairs of runs it takes.
    fn rounds(&self) -> usize;
    /// Makes one pair of runs, and adds a pair of figures to each promise. Even rounds run native first, odd ones
    /// protected first, so that what one run leaves behind favours neither.
    fn round(&mut self, number: usize, workshop: &Workshop, collected: &mut Collected) -> Outcome<()>;
}

/// The two sides in the order of a round.
pub fn sides<'a>(round: usize, protected: &'a [&'a str]) -> [Side<'a>; 2] {
    match round % 2 {
        0 => [Side::Native, Side::Protected(protected)],
        _ => [Side::Protected(protected), Side::Native],
    }
}

/// What all rounds found.
#[derive(Default)]
pub struct Collected {
    pairs: Vec<(String, Pair)>,
    obstacle: Option<String>,
    notes: Vec<String>,
}

impl Collected {
    /// A pair of figures for a promise.
    pub fn add(&mut self, id: &str, native: Option<f64>, protected: f64) {
        self.pairs.push((id.into(), Pair { native, protected }));
    }

    /// Why the figures are not those that were promised.
    pub fn obstacle(&mut self, why: impl Into<String>) {
        self.obstacle.get_or_insert(why.into());
    }

    /// Worth knowing beside the figures; said once.
    pub fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }

    /// A note with figures that differ a little from run to run: the first run's stands for all that begin with `kind`.
    pub fn note_once(&mut self, kind: &str, text: String) {
        if !self.notes.iter().any(|note| note.starts_with(kind)) {
            self.notes.push(text);
        }
    }

    /// Under what circumstances the protected runs ran.
    pub fn conditions(&mut self, conditions: &Conditions) {
        // Counts differ a little from run to run; the first run's stand for all.
        if conditions.commits > 0 && !self.notes.iter().any(|note| note.contains("of slow calls trapped")) {
            self.notes.insert(0, conditions.to_string());
        }
    }

    /// The reports on `promises`.
    pub fn reports(self, promises: Vec<Promise>) -> Vec<Report> {
        let report = |promise: Promise| {
            let pairs: Vec<Pair> =
                self.pairs.iter().filter(|(id, _)| *id == promise.id).map(|(_, pair)| *pair).collect();
            let nothing = pairs.is_empty().then(|| "nothing was measured".to_string());
            Report::new(promise, &pairs, self.obstacle.clone().or(nothing), self.notes.clone())
        };
        promises.into_iter().map(report).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_side_goes_first_in_every_other_round() {
        assert_eq!(sides(0, &[])[0], Side::Native);
        assert_eq!(sides(1, &[])[1], Side::Native);
    }
}
