//! What a death means: the program's own end, or something to recover from. Policy only; nothing here acts.

use crate::end::End;
use crate::forward::GATE_SIGNAL;
use outlast_image::control::{state, Control};
use std::sync::atomic::Ordering::Acquire;
use std::time::Duration;

/// What the control page said when the program was found dead.
#[derive(Clone, Copy, Debug)]
pub struct Situation {
    /// One of [`state`].
    pub state: u32,
    /// Whether there is a commit to recover from.
    pub has_commit: bool,
    /// Sequence number of the last commit.
    pub seq: u64,
    /// Someone asked for the program to be stopped.
    pub stopping: bool,
    /// What the program passed to exit, if `state` is EXITING.
    pub exit_code: i32,
    /// Restores done since the supervisor started to watch.
    pub restored: u32,
    /// One of [`outlast_image::control::unreadable`], or 0.
    pub unreadable: u32,
    /// The OOM killer killed it: what its control groups allow, in bytes, if they limit it.
    pub shortage: Option<Option<u64>>,
}

impl Situation {
    pub fn of(control: &Control) -> Self {
        Self {
            state: control.state.load(Acquire),
            has_commit: control.commits.load(Acquire) > 0,
            seq: control.last_seq.load(Acquire),
            stopping: control.stopping.load(Acquire) != 0,
            exit_code: control.exit_code.load(Acquire),
            restored: control.restored.load(Acquire),
            unreadable: control.unreadable.load(Acquire),
            shortage: None,
        }
    }
}

/// What is to be done about a death.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was the program's end.
    End(End),
    /// Respawn from the last commit; this signal is the cause.
    Recover(i32),
    /// It died before its first instruction: start it again.
    StartAgain(i32),
    /// It died of this signal too often: let it be its end, and say so.
    GiveUp(i32),
    /// Its store cannot be read, for this reason.
    Unreadable(u32),
}

/// Deaths of the same kind in a row, to bound what is tried against them.
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
    /// How long to wait for memory before the next attempt.
    pub fn patience(&self) -> Option<Duration> {
        let doublings = self.starved.checked_sub(2)?;
        Some(STARVED_PAUSE * (1 << doublings.min(STARVED_MAX)))
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

    /// How long to wait before the next attempt.
    pub fn pause(&self) -> Option<Duration> {
        (self.unfinished > UNFINISHED_HASTY).then_some(PAUSE)
    }
}

/// Judges a death. `retries` bounds the deaths by the same fault at the same commit.
pub fn judge(end: End, now: &Situation, retries: u32, tries: &mut Tries) -> Verdict {
    let End::Killed(signal) = end else { return Verdict::End(end) };
    // The gate's signal ends a program only while the engine is not in place: nobody meant its end.
    let killed = signal == libc::SIGKILL || signal == GATE_SIGNAL;
    if now.stopping || !(killed || is_fault(signal)) {
        return Verdict::End(end);
    }
    match now.state {
        state::SUSPENDED | state::GIVEN_UP => return Verdict::End(end),
        state::EXITING if killed => return Verdict::End(End::Exited(now.exit_code & 0xff)),
        state::EXITING => return Verdict::End(end),
        _ => (),
    }
    if now.unreadable != 0 {
        return Verdict::Unreadable(now.unreadable);
    }
    if now.restored == tries.restored {
        tries.unfinished += 1;
    } else {
        tries.unfinished = 0;
    }
    tries.restored = now.restored;
    tries.starved = match now.shortage {
        Some(limit) if tries.starved > 0 && tries.starved_at == (now.seq, limit) => tries.starved + 1,
        Some(limit) => {
            tries.starved_at = (now.seq, limit);
            1
        }
        None => 0,
    };
    if !killed {
        tries.fatal = if tries.fatal > 0 && tries.fatal_seq == now.seq { tries.fatal + 1 } else { 1 };
        tries.fatal_seq = now.seq;
    }
    match (tries.fatal > retries && !killed) || tries.unfinished > UNFINISHED_MAX || tries.starved > STARVED_MAX {
        true => Verdict::GiveUp(signal),
        false if now.has_commit => Verdict::Recover(signal),
        false => Verdict::StartAgain(signal),
    }
}

/// Signals by which the kernel says that a program did something wrong.
pub fn is_fault(signal: i32) -> bool {
    const FAULTS: [i32; 7] =
        [libc::SIGSEGV, libc::SIGABRT, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGSYS];
    FAULTS.contains(&signal)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KILLED: End = End::Killed(libc::SIGKILL);
    const CRASHED: End = End::Killed(libc::SIGSEGV);

    fn protected() -> Situation {
        Situation {
            state: state::PROTECTED,
            has_commit: true,
            seq: 7,
            stopping: false,
            exit_code: 0,
            restored: 0,
            unreadable: 0,
            shortage: None,
        }
    }

    fn once(end: End, now: Situation) -> Verdict {
        judge(end, &now, 3, &mut Tries::default())
    }

    #[test]
    fn a_killed_program_is_recovered() {
        assert_eq!(once(KILLED, protected()), Verdict::Recover(libc::SIGKILL));
        assert_eq!(once(KILLED, Situation { state: state::EXECING, ..protected() }), Verdict::Recover(libc::SIGKILL));
    }

    #[test]
    fn a_knock_that_finds_no_engine_is_no_end() {
        assert_eq!(once(End::Killed(GATE_SIGNAL), protected()), Verdict::Recover(GATE_SIGNAL));
    }

    #[test]
    fn a_program_killed_before_its_first_instruction_is_started_again() {
        let young = Situation { state: state::STARTING, has_commit: false, ..protected() };
        assert_eq!(once(KILLED, young), Verdict::StartAgain(libc::SIGKILL));
    }

    #[test]
    fn exit_and_signals_that_end_programs_are_the_end() {
        assert_eq!(once(End::Exited(3), protected()), Verdict::End(End::Exited(3)));
        for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGPIPE, libc::SIGALRM, libc::SIGUSR1, 40, 63] {
            assert_eq!(once(End::Killed(signal), protected()), Verdict::End(End::Killed(signal)));
        }
    }

    #[test]
    fn a_kill_within_exit_keeps_the_exit_status() {
        let exiting = Situation { state: state::EXITING, exit_code: 0x105, ..protected() };
        assert_eq!(once(KILLED, exiting), Verdict::End(End::Exited(5)));
    }

    #[test]
    fn stopped_and_suspended_programs_are_let_go() {
        assert_eq!(once(KILLED, Situation { stopping: true, ..protected() }), Verdict::End(KILLED));
        assert_eq!(once(KILLED, Situation { state: state::SUSPENDED, ..protected() }), Verdict::End(KILLED));
        assert_eq!(once(CRASHED, Situation { state: state::GIVEN_UP, ..protected() }), Verdict::End(CRASHED));
    }

    #[test]
    fn a_store_that_cannot_be_read_is_not_tried_again() {
        assert_eq!(once(KILLED, Situation { unreadable: 4, ..protected() }), Verdict::Unreadable(4));
        assert_eq!(once(KILLED, Situation { unreadable: 4, stopping: true, ..protected() }), Verdict::End(KILLED));
    }

    #[test]
    fn the_same_fault_at_the_same_commit_is_tried_a_bounded_number_of_times() {
        let mut tries = Tries::default();
        let mut at = |seq, restored| judge(CRASHED, &Situation { seq, restored, ..protected() }, 3, &mut tries);
        for restored in 0..3 {
            assert_eq!(at(7, restored), Verdict::Recover(libc::SIGSEGV));
        }
        assert_eq!(at(7, 3), Verdict::GiveUp(libc::SIGSEGV));
    }

    #[test]
    fn progress_between_faults_starts_the_count_again() {
        let mut tries = Tries::default();
        for n in 0..50 {
            let now = Situation { seq: u64::from(n), restored: n, ..protected() };
            assert_eq!(judge(CRASHED, &now, 3, &mut tries), Verdict::Recover(libc::SIGSEGV));
        }
    }

    #[test]
    fn kills_of_a_program_that_waits_are_never_too_many() {
        let mut tries = Tries::default();
        for restored in 0..10_000 {
            let now = Situation { restored, ..protected() };
            assert_eq!(judge(KILLED, &now, 3, &mut tries), Verdict::Recover(libc::SIGKILL));
        }
    }

    fn starved(seq: u64, limit: u64) -> Situation {
        Situation { seq, shortage: Some(Some(limit)), restored: seq as u32, ..protected() }
    }

    #[test]
    fn lack_of_memory_at_the_same_commit_is_tried_a_bounded_number_of_times_and_ever_more_slowly() {
        let mut tries = Tries::default();
        let mut pauses = Vec::new();
        while judge(KILLED, &starved(7, 4096), 3, &mut tries) == Verdict::Recover(libc::SIGKILL) {
            pauses.push(tries.patience());
        }
        assert_eq!(pauses.len(), STARVED_MAX as usize);
        assert_eq!(pauses[0], None, "what the dead had used may be enough");
        assert!(pauses.is_sorted() && pauses[1] < pauses[7] && pauses[7] < Some(Duration::from_secs(10)), "{pauses:?}");
    }

    #[test]
    fn a_commit_another_limit_or_another_death_starts_the_count_again() {
        let mut tries = Tries::default();
        let mut recovers = |now| {
            let verdict = judge(KILLED, &now, 3, &mut tries);
            assert_eq!((verdict, tries.patience()), (Verdict::Recover(libc::SIGKILL), None));
        };
        for n in 0..50 {
            recovers(starved(n, 4096));
            recovers(starved(n, 8192));
        }
        recovers(Situation { seq: 49, ..protected() });
        recovers(starved(49, 8192));
    }

    #[test]
    fn a_process_that_the_kernel_refuses_is_asked_for_a_bounded_number_of_times() {
        let mut tries = Tries::default();
        for _ in 0..3 {
            let pauses: Vec<_> = std::iter::from_fn(|| tries.refused()).collect();
            assert!(
                pauses.len() + 1 == STARVED_MAX as usize && pauses.is_sorted() && pauses[0] < pauses[6],
                "{pauses:?}"
            );
            tries.born();
        }
    }

    #[test]
    fn restores_that_never_finish_are_bounded() {
        let mut tries = Tries::default();
        let verdicts: Vec<_> = (0..=UNFINISHED_MAX).map(|_| judge(KILLED, &protected(), 3, &mut tries)).collect();
        assert_eq!(verdicts.iter().filter(|v| **v == Verdict::Recover(libc::SIGKILL)).count(), UNFINISHED_MAX as usize);
        assert_eq!(verdicts.last(), Some(&Verdict::GiveUp(libc::SIGKILL)));
        assert!(tries.pause().is_some() && Tries::default().pause().is_none());
    }
}
