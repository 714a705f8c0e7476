//! Rung 6: which older generation to try against a failure, and in which surroundings (progressive retry).

use outlast_interfaces::proc::{Cause, Step, Stuck, Surroundings};

/// Which generations were tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FurtherBack {
    /// Cause and instruction of the failure.
    failure: Option<(Cause, u64)>,
    /// The generation that was gone back to last; 0: none.
    tried: u64,
    /// How often the program was given again what it had read since.
    again: usize,
    /// How often the failure was met with a generation otherwise.
    times: usize,
}

/// At first the newest generation is gone back to with all that was read since: if the failure does not come again, nobody can tell that there
/// was one. It may not come again by itself, or where calls are delayed; what was read led to it, after all.
const AGAIN: [Surroundings; 2] = [Surroundings::Same, Surroundings::RoomAndDelays];

/// From the second time on that a failure is met with a generation something is different.
const OTHERWISE: [Surroundings; 3] = [Surroundings::Same, Surroundings::Room, Surroundings::RoomAndDelays];

impl FurtherBack {
    /// What to go back to now: the newest at first, with and without what was read since, an older one each time that the same failure comes again, or another one before
    /// there was a new generation; the oldest again while there are other surroundings that were not tried. None: there is nothing
    /// left.
    pub fn next(&mut self, stuck: &Stuck) -> Option<Step> {
        let failure = Some((stuck.cause, stuck.instruction));
        let kept = &stuck.kept;
        let repeats = self.tried > 0 && failure == self.failure;
        let has_progressed = kept.last().is_some_and(|newest| *newest > self.tried);
        let goes_on = self.tried > 0 && (repeats || !has_progressed);
        let (again, times) = if goes_on { (self.again, self.times) } else { (0, 0) };
        if let Some(surroundings) = AGAIN.get(again).copied() {
            let newest = kept.iter().rev().copied().find(|number| !goes_on || *number <= self.tried);
            *self = Self { failure, tried: newest?, again: again + 1, times };
            return Some(Step { generation: self.tried, surroundings, again: true });
        }
        let before = match times {
            0 => self.tried.saturating_add(1),
            _ => self.tried,
        };
        let older = kept.iter().rev().copied().find(|number| *number < before);
        let same = (times < OTHERWISE.len() && kept.contains(&self.tried)).then_some(self.tried);
        *self = Self { failure, tried: older.or(same)?, again, times: times + 1 };
        let surroundings = OTHERWISE[times.min(OTHERWISE.len() - 1)];
        Some(Step { generation: self.tried, surroundings, again: false })
    }
}

#[cfg(test)]
mod tests {
    use super::Surroundings::{Room, RoomAndDelays, Same};
    use super::*;

    const CRASH: (Cause, u64) = (Cause::Signal(libc::SIGSEGV), 0x1000);
    const OTHER: (Cause, u64) = (Cause::Signal(libc::SIGABRT), 0x2000);

    fn next(
        state: &mut FurtherBack,
        (cause, instruction): (Cause, u64),
        kept: &[u64],
    ) -> Option<(u64, Surroundings, bool)> {
        let step = state.next(&Stuck { cause, instruction, kept: kept.to_vec() });
        step.map(|step| (step.generation, step.surroundings, step.again))
    }

    /// Goes back as often as there is something to go back to, the failure being the same; the generations tried, and how.
    fn all_tries(mut state: FurtherBack, kept: &[u64]) -> Vec<(u64, Surroundings)> {
        let kept_at_first = kept;
        let (mut kept, mut tries) = (kept.to_vec(), Vec::new());
        while let Some(step) = next(&mut state, CRASH, &kept) {
            kept.retain(|number| *number <= step.0);
            tries.push(step);
            assert!(tries.len() < 100, "it has no end");
        }
        // With what was read since it is the newest each time.
        let newest = *kept_at_first.last().expect("one");
        assert_eq!(tries[..2], [(newest, Same, true), (newest, RoomAndDelays, true)]);
        let tries = tries.split_off(2);
        assert!(tries.iter().all(|(_, _, again)| !again));
        tries.into_iter().map(|(number, surroundings, _)| (number, surroundings)).collect()
    }

    fn tried(tried: u64) -> FurtherBack {
        FurtherBack { failure: Some(CRASH), tried, again: AGAIN.len(), times: OTHERWISE.len() }
    }

    #[test]
    fn the_same_failure_goes_further_back_each_time_and_meets_other_surroundings_until_there_is_nothing_left() {
        let expected = [(9, Same), (8, Room), (5, RoomAndDelays), (3, RoomAndDelays)];
        assert_eq!(all_tries(FurtherBack::default(), &[3, 5, 8, 9]), expected);
        // Generations made since then come from the one that did not help.
        assert_eq!(next(&mut tried(3), CRASH, &[3, 10, 11]), None);
    }

    #[test]
    fn one_generation_is_tried_in_all_surroundings() {
        assert_eq!(all_tries(FurtherBack::default(), &[4]), [(4, Same), (4, Room), (4, RoomAndDelays)]);
        assert_eq!(all_tries(FurtherBack::default(), &[3, 4]), [(4, Same), (3, Room), (3, RoomAndDelays)]);
    }

    #[test]
    fn another_failure_after_progress_begins_with_the_newest() {
        assert_eq!(next(&mut tried(5), OTHER, &[3, 5, 10]), Some((10, Same, true)));
        assert_eq!(next(&mut tried(5), OTHER, &[3, 5]), Some((3, RoomAndDelays, false)));
        assert_eq!(next(&mut tried(5), CRASH, &[3, 5, 10]), Some((3, RoomAndDelays, false)));
    }

    #[test]
    fn nothing_kept_is_nothing_to_go_back_to() {
        assert_eq!(next(&mut FurtherBack::default(), CRASH, &[]), None);
    }
}
