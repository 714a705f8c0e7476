//! Confidence intervals of shares.

/// The 95 % interval of a share by Wilson's score (E. B. Wilson, 1927), which also holds near 0 and 1; none without trials.
pub fn interval(successes: usize, trials: usize) -> Option<[f64; 2]> {
    /// The 97.5 % quantile of the normal distribution.
    const Z: f64 = 1.959_963_984_540_054;
    if trials == 0 {
        return None;
    }
    let (n, p) = (trials as f64, successes as f64 / trials as f64);
    let centre = p + Z * Z / (2.0 * n);
    let reach = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
    let whole = 1.0 + Z * Z / n;
    Some([((centre - reach) / whole).max(0.0), ((centre + reach) / whole).min(1.0)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_published_values() {
        // Newcombe, Statistics in Medicine 17 (1998), table I, method 3.
        let [low, high] = interval(81, 263).unwrap();
        assert!((low - 0.2553).abs() < 1e-4 && (high - 0.3662).abs() < 1e-4, "{low} {high}");
        let [low, high] = interval(0, 20).unwrap();
        assert!(low == 0.0 && (high - 0.1611).abs() < 1e-4, "{low} {high}");
        assert_eq!(interval(0, 0), None);
    }
}
