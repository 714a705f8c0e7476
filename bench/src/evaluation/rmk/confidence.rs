//! Means with their 95 % confidence, as the paper gives them.

/// The mean, and how far from it the true one may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    pub mean: f64,
    pub within: f64,
    pub runs: usize,
}

/// Student's t for 95 %, by degrees of freedom from 1 on; more of them are as good as infinitely many.
const T: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

impl Mean {
    /// None if there is nothing.
    pub fn of(values: &[f64]) -> Option<Self> {
        let runs = values.len();
        let mean = values.iter().sum::<f64>() / (runs > 0).then_some(runs as f64)?;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let within = match runs {
            1 => f64::NAN,
            _ => T.get(runs - 2).unwrap_or(&1.96) * (squares / (runs - 1) as f64 / runs as f64).sqrt(),
        };
        Some(Self { mean, within, runs })
    }

    /// `1.20 ± 0.05`; of a single run the mean alone.
    pub fn text(&self, digits: usize) -> String {
        match self.runs {
            1 => format!("{:.digits$}", self.mean),
            _ => format!("{:.digits$} ± {:.digits$}", self.mean, self.within),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_has_the_interval_of_few_runs() {
        let mean = Mean::of(&[1.0, 2.0, 3.0]).unwrap();
        assert_eq!((mean.mean, mean.runs), (2.0, 3));
        assert!((mean.within - 4.303 / 3.0_f64.sqrt()).abs() < 1e-9, "{mean:?}");
        assert_eq!(mean.text(1), "2.0 ± 2.5");
    }

    #[test]
    fn one_run_has_no_interval_and_none_no_mean() {
        assert_eq!(Mean::of(&[4.0]).unwrap().text(0), "4");
        assert_eq!(Mean::of(&[]), None);
    }
}
