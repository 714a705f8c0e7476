//! Deaths of the same kind in a row, to bound what is tried against them. Bounded by counting, not by a clock.

use outlast_interfaces::proc::Death;
use std::time::Duration;

/// What was tried so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tries {
    fatal: u32,
    fatal_seq: u64,
    unfinished: u32,
    restored: u32,
    starved: u32,
    starved_at: (u64, Option<u64>),
    refused: u32,
}

/// Restores in a row that may be interrupted by death before the ladder ends.
pub const UNFINISHED_MAX: u32 = 1000;
/// Restores in a row after which the next one waits a little: whatever kills them may be over then.
const UNFINISHED_HASTY: u32 = 50;
/// How long it waits.
const PAUSE: Duration = Duration::from_millis(10);
/// How often in a row the OOM killer may kill the program with the same commit and the same limit.
pub const STARVED_MAX: u32 = 8;
/// How long the second recovery in such a row waits for memory; each after it twice as long.
const STARVED_PAUSE: Duration = Duration::from_millis(100);

impl Tries {
    /// Takes note of a death that is none of the program's own will; `killed`: no fault of its own.
    pub fn count(&mut self, death: &Death, killed: bool) {
        self.unfinished = if death.restored == self.restored { self.unfinished + 1 } else { 0 };
        self.restored = death.restored;
        self.starved = match death.shortage {
            Some(shortage) if self.starved > 0 && self.starved_at == (death.seq, shortage.limit) => self.starved + 1,
            Some(shortage) => {
                self.starved_at = (death.seq, shortage.limit);
                1
            }
            None => 0,
        };
        if !killed {
            // A thread that was in its section from the beginning was restored to there: commits made meanwhile are no progress.
            let is_same = self.fatal_seq == death.seq || death.hung.is_some_and(|hung| !hung.has_moved);
            self.fatal = if self.fatal > 0 && is_same { self.fatal + 1 } else { 1 };
            self.fatal_seq = death.seq;
        }
    }

    /// Whether nothing more is to be tried. `retries` bounds the deaths by the same fault at the same commit.
    pub fn are_used_up(&self, killed: bool, retries: u32) -> bool {
        (self.fatal > retries && !killed) || self.unfinished > UNFINISHED_MAX || self.starved > STARVED_MAX
    }

    /// How long to wait before the next attempt.
    pub fn patience(&self) -> Duration {
        match self.starved.checked_sub(2) {
            Some(doublings) => STARVED_PAUSE * (1 << doublings.min(STARVED_MAX)),
            None if self.unfinished > UNFINISHED_HASTY => PAUSE,
            None => Duration::ZERO,
        }
    }

    /// The kernel refused a new process for lack of memory or by a limit: how long to wait until it is asked again, if it is.
    pub fn refused(&mut self) -> Option<Duration> {
        self.refused += 1;
        (self.refused < STARVED_MAX).then(|| STARVED_PAUSE * (1 << (self.refused - 1)))
    }

    /// It did not refuse it.
    pub fn born(&mut self) {
        self.refused = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_the_kernel_refuses_is_asked_for_a_bounded_number_of_times() {
        let mut tries = Tries::default();
        for _ in 0..3 {
            let pauses: Vec<_> = std::iter::from_fn(|| tries.refused()).collect();
            let grows = pauses.is_sorted() && pauses[0] < pauses[6];
            assert!(pauses.len() + 1 == STARVED_MAX as usize && grows, "{pauses:?}");
            tries.born();
        }
    }
}
