//! When to micro-reboot and when to give up: decisions only, nothing is done here.

use std::time::Duration;

/// Deaths in a row without a single completed call in between. Many, for on a busy machine somebody else's kills may come
/// before a worker has had a processor; all of them together take some ten milliseconds.
pub const FRUITLESS: u32 = 20;
/// Deaths that the same call was being executed at.
pub const TORN: u32 = 12;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Reboot,
    GiveUp,
}

/// What counts of a death.
pub struct Death {
    /// Calls that the instance had completed.
    pub completed: u64,
    /// It had come to take calls.
    pub started: bool,
    /// A call was being executed, not blocked.
    pub wanted: bool,
    pub lived: Duration,
}

/// Deaths seen so far, as far as they count.
#[derive(Default)]
pub struct Deaths {
    fruitless: u32,
}

impl Deaths {
    pub fn judge(&mut self, death: &Death) -> Verdict {
        // One that nobody wanted anything of did not fail, unless it did so at once.
        let wanted = death.wanted || !death.started || death.lived < Duration::from_millis(1);
        let failed = death.completed == 0 && wanted;
        self.fruitless = if failed { self.fruitless + 1 } else { 0 };
        match self.fruitless >= FRUITLESS {
            true => Verdict::GiveUp,
            false => Verdict::Reboot,
        }
    }
}

/// A call that neither ends nor blocks for so long has hung. Too early a verdict costs a micro-reboot that nobody sees.
pub const HANG: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::{Death, Deaths, Verdict, FRUITLESS};
    use std::time::Duration;

    #[test]
    fn only_deaths_in_a_row_that_served_nobody_end_a_component() {
        let mut deaths = Deaths::default();
        let death = |completed, wanted| Death { completed, started: true, wanted, lived: Duration::from_secs(1) };
        for spared in [death(1, true), death(0, false)] {
            for _ in 1..FRUITLESS {
                assert_eq!(deaths.judge(&death(0, true)), Verdict::Reboot);
            }
            assert_eq!(deaths.judge(&spared), Verdict::Reboot);
        }
        for _ in 1..FRUITLESS {
            assert_eq!(deaths.judge(&Death { started: false, ..death(0, false) }), Verdict::Reboot);
        }
        assert_eq!(deaths.judge(&death(0, true)), Verdict::GiveUp);
    }
}
