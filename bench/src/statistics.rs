//! Figures that a noisy, shared machine cannot easily spoil: medians and quartiles of many short runs.

use serde::Serialize;

/// What is known of a quantity after several runs, in the unit of the runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    pub median: f64,
    /// First and third quartile.
    pub quartiles: [f64; 2],
    /// Smallest and largest run.
    pub range: [f64; 2],
    pub runs: usize,
}

impl Summary {
    /// `None` if there was no run.
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (first, last) = (*sorted.first()?, *sorted.last()?);
        Some(Self {
            median: quantile(&sorted, 0.5),
            quartiles: [quantile(&sorted, 0.25), quantile(&sorted, 0.75)],
            range: [first, last],
            runs: sorted.len(),
        })
    }
}

/// The mean of the middle half. `values` is not empty.
pub fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = &values[values.len() / 4..values.len() - values.len() / 4];
    half.iter().sum::<f64>() / half.len() as f64
}

/// Between the two nearest values, in proportion. `sorted` is not empty.
fn quantile(sorted: &[f64], q: f64) -> f64 {
    let at = q * (sorted.len() - 1) as f64;
    let (low, high) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    low + (high - low) * at.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_wild_run_does_not_move_the_median() {
        let summary = Summary::of(&[3.0, 1.0, 2.0, 900.0, 4.0]).unwrap();
        assert_eq!((summary.median, summary.quartiles, summary.range), (3.0, [2.0, 4.0], [1.0, 900.0]));
    }

    #[test]
    fn an_even_number_of_runs_has_its_median_between_two() {
        assert_eq!(Summary::of(&[1.0, 2.0, 4.0, 8.0]).unwrap().median, 3.0);
    }

    #[test]
    fn the_middle_half_is_what_is_left_without_the_extremes() {
        assert_eq!(middle(vec![900.0, 2.0, 4.0, -7.0]), 3.0);
        assert_eq!(middle(vec![5.0]), 5.0);
    }

    #[test]
    fn no_run_is_no_figure() {
        assert_eq!(Summary::of(&[]), None);
    }
}
