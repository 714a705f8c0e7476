//! The profiling counter's history (RMK, §4): how much was computed in each of the last slices while somebody waited for its end.

use outlast_interfaces::oshang::Settings;
use std::collections::VecDeque;
use std::time::Duration;

/// As in the paper.
pub const WINDOW: usize = 50;
/// How many times the largest count is still no hang.
const MARGIN: u32 = 3;

#[derive(Default)]
pub struct Slices(VecDeque<Duration>);

impl Slices {
    /// One has ended, after it had computed for so long; and so many more have since, each within a part of this time.
    pub fn ended(&mut self, count: Duration, more: u64, within: Duration) {
        self.push(count);
        let most = more.min(WINDOW as u64);
        let average = within / u32::try_from(more.max(1)).unwrap_or(u32::MAX);
        (0..most).for_each(|_| self.push(average));
    }

    fn push(&mut self, count: Duration) {
        if self.0.len() == WINDOW {
            self.0.pop_front();
        }
        self.0.push_back(count);
    }

    /// What the checking counter begins with. Too few slices are known, or they are short: the default check value (§4.1).
    pub fn check_value(&self, settings: &Settings) -> Duration {
        let most = self.0.iter().max().filter(|_| self.0.len() == WINDOW).copied().unwrap_or_default();
        most.saturating_mul(MARGIN).clamp(settings.threshold, settings.bound.max(settings.threshold))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn check(slices: &Slices) -> Duration {
        slices.check_value(&Settings::with_threshold(ms(500)))
    }

    #[test]
    fn few_or_short_slices_leave_the_default() {
        let mut slices = Slices::default();
        slices.ended(ms(400), 0, ms(0));
        assert_eq!(check(&slices), ms(500));
        slices.ended(ms(3), 10_000, ms(100));
        assert_eq!(check(&slices), ms(500));
    }

    #[test]
    fn long_slices_make_it_larger_up_to_a_bound_and_are_forgotten() {
        let mut slices = Slices::default();
        (0..WINDOW).for_each(|_| slices.ended(ms(3), 0, ms(0)));
        slices.ended(ms(300), 0, ms(0));
        assert_eq!(check(&slices), ms(900));
        slices.ended(ms(950), 0, ms(0));
        assert_eq!(check(&slices), ms(2000));
        slices.ended(ms(3), WINDOW as u64, ms(100));
        assert_eq!(check(&slices), ms(500));
    }

    #[test]
    fn the_window_has_an_end() {
        let mut slices = Slices::default();
        slices.ended(ms(3), u64::MAX, ms(100));
        assert_eq!(slices.0.len(), WINDOW);
    }
}
