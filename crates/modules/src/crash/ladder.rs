//! The ladder: what is to be done about a death. Decides only; nothing here acts.

use super::tries::Tries;
use outlast_interfaces::proc::{Cause, Death, Decision, End, Respawn, Standing};

/// Judges a death. `retries` bounds the deaths by the same fault at the same commit.
pub fn decide(death: &Death, retries: u32, tries: &mut Tries) -> Decision {
    let End::Killed(signal) = death.end else { return Decision::End(death.end) };
    // Of the engine's own errors nobody should be recovered for ever either.
    let is_own = death.by_engine || death.hung.is_some();
    let killed = (signal == libc::SIGKILL || death.by_call) && !is_own;
    if death.stopping || !(killed || is_own || is_fault(signal)) {
        return Decision::End(death.end);
    }
    match death.standing {
        Standing::GivenUp if death.has_older => return Decision::GoBack(Cause::Signal(signal)),
        Standing::Suspended | Standing::GivenUp => return Decision::End(death.end),
        Standing::Exiting(status) if killed => return Decision::End(End::Exited(status & 0xff)),
        Standing::Exiting(_) => return Decision::End(death.end),
        Standing::Protected => (),
    }
    let at_last = if death.has_older { Decision::GoBack } else { Decision::GiveUp };
    if let Some(reason) = death.unreadable {
        return at_last(Cause::Unreadable(reason));
    }
    tries.count(death, killed);
    match tries.are_used_up(killed, retries) {
        true => at_last(Cause::Signal(signal)),
        false if death.has_commit => Decision::Respawn(Respawn { signal, after: tries.patience() }),
        false => Decision::StartAgain(signal),
    }
}

/// Signals by which the kernel says that a program did something wrong.
fn is_fault(signal: i32) -> bool {
    const FAULTS: [i32; 7] =
        [libc::SIGSEGV, libc::SIGABRT, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGSYS];
    FAULTS.contains(&signal)
}

#[cfg(test)]
mod tests {
    use super::super::tries::{STARVED_MAX, UNFINISHED_MAX};
    use super::*;
    use outlast_interfaces::proc::{Hung, Shortage};
    use std::time::Duration;

    const KILLED: End = End::Killed(libc::SIGKILL);
    const CRASHED: End = End::Killed(libc::SIGSEGV);

    fn once(death: Death) -> Decision {
        decide(&death, 3, &mut Tries::default())
    }

    fn respawn(signal: i32) -> Decision {
        Decision::Respawn(Respawn { signal, after: Duration::ZERO })
    }

    #[test]
    fn a_killed_program_is_recovered() {
        assert_eq!(once(Death::plain(KILLED)), respawn(libc::SIGKILL));
        assert_eq!(once(Death::plain(CRASHED)), respawn(libc::SIGSEGV));
    }

    #[test]
    fn a_call_that_finds_no_engine_is_no_end() {
        assert_eq!(once(Death { by_call: true, ..Death::plain(End::Killed(64)) }), respawn(64));
        assert_eq!(once(Death::plain(End::Killed(64))), Decision::End(End::Killed(64)));
    }

    #[test]
    fn a_program_killed_before_its_first_instruction_is_started_again() {
        assert_eq!(once(Death { has_commit: false, ..Death::plain(KILLED) }), Decision::StartAgain(libc::SIGKILL));
    }

    #[test]
    fn exit_and_signals_that_end_programs_are_the_end() {
        assert_eq!(once(Death::plain(End::Exited(3))), Decision::End(End::Exited(3)));
        for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGPIPE, libc::SIGALRM, libc::SIGUSR1, 40, 63] {
            assert_eq!(once(Death::plain(End::Killed(signal))), Decision::End(End::Killed(signal)));
        }
    }

    #[test]
    fn a_kill_within_exit_keeps_the_exit_status() {
        let exiting = Standing::Exiting(0x105);
        assert_eq!(once(Death { standing: exiting, ..Death::plain(KILLED) }), Decision::End(End::Exited(5)));
        assert_eq!(once(Death { standing: exiting, ..Death::plain(CRASHED) }), Decision::End(CRASHED));
    }

    #[test]
    fn stopped_and_suspended_programs_are_let_go() {
        assert_eq!(once(Death { stopping: true, ..Death::plain(KILLED) }), Decision::End(KILLED));
        assert_eq!(once(Death { standing: Standing::Suspended, ..Death::plain(KILLED) }), Decision::End(KILLED));
        assert_eq!(once(Death { standing: Standing::GivenUp, ..Death::plain(CRASHED) }), Decision::End(CRASHED));
    }

    #[test]
    fn a_store_that_cannot_be_read_is_not_tried_again() {
        let unreadable = Death { unreadable: Some(4), ..Death::plain(KILLED) };
        assert_eq!(once(unreadable), Decision::GiveUp(Cause::Unreadable(4)));
        assert_eq!(once(Death { has_older: true, ..unreadable }), Decision::GoBack(Cause::Unreadable(4)));
        assert_eq!(once(Death { stopping: true, ..unreadable }), Decision::End(KILLED));
    }

    #[test]
    fn who_has_older_generations_goes_back_before_giving_up() {
        let again = |standing| Death { standing, has_older: true, ..Death::plain(CRASHED) };
        let back = Decision::GoBack(Cause::Signal(libc::SIGSEGV));
        assert_eq!(once(again(Standing::GivenUp)), back);
        assert_eq!(decide(&again(Standing::Protected), 0, &mut Tries::default()), back);
        assert_eq!(once(Death { stopping: true, ..again(Standing::GivenUp) }), Decision::End(CRASHED));
    }

    #[test]
    fn the_same_fault_at_the_same_commit_is_tried_a_bounded_number_of_times() {
        let mut tries = Tries::default();
        let mut at = |seq, restored| decide(&Death { seq, restored, ..Death::plain(CRASHED) }, 3, &mut tries);
        for restored in 0..3 {
            assert_eq!(at(7, restored), respawn(libc::SIGSEGV));
        }
        assert_eq!(at(7, 3), Decision::GiveUp(Cause::Signal(libc::SIGSEGV)));
    }

    #[test]
    fn an_error_of_the_engine_is_tried_as_often_as_a_fault() {
        let mut tries = Tries::default();
        let mut at = |restored| decide(&Death { restored, by_engine: true, ..Death::plain(KILLED) }, 3, &mut tries);
        for restored in 0..3 {
            assert_eq!(at(restored), respawn(libc::SIGKILL));
        }
        assert_eq!(at(3), Decision::GiveUp(Cause::Signal(libc::SIGKILL)));
    }

    #[test]
    fn a_hang_is_tried_as_often_as_a_fault_wherever_commits_were_made_meanwhile() {
        let hung = Some(Hung { section: 1, has_moved: false });
        let mut tries = Tries::default();
        let mut at = |n| decide(&Death { seq: n, restored: n as u32, hung, ..Death::plain(KILLED) }, 3, &mut tries);
        assert_eq!([at(0), at(1), at(2)], [respawn(libc::SIGKILL); 3]);
        assert_eq!(at(3), Decision::GiveUp(Cause::Signal(libc::SIGKILL)));
        let mut tries = Tries::default();
        for n in 0..50 {
            let hung = Some(Hung { section: 1, has_moved: true });
            let now = Death { seq: n, restored: n as u32, hung, ..Death::plain(KILLED) };
            assert_eq!(decide(&now, 3, &mut tries), respawn(libc::SIGKILL), "it goes on between hangs");
        }
    }

    #[test]
    fn progress_between_faults_starts_the_count_again() {
        let mut tries = Tries::default();
        for n in 0..50 {
            let now = Death { seq: u64::from(n), restored: n, ..Death::plain(CRASHED) };
            assert_eq!(decide(&now, 3, &mut tries), respawn(libc::SIGSEGV));
        }
    }

    #[test]
    fn kills_of_a_program_that_waits_are_never_too_many() {
        let mut tries = Tries::default();
        for restored in 0..10_000 {
            assert_eq!(decide(&Death { restored, ..Death::plain(KILLED) }, 3, &mut tries), respawn(libc::SIGKILL));
        }
    }

    fn starved(seq: u64, limit: u64) -> Death {
        Death { seq, shortage: Some(Shortage { limit: Some(limit) }), restored: seq as u32, ..Death::plain(KILLED) }
    }

    #[test]
    fn lack_of_memory_at_the_same_commit_is_tried_a_bounded_number_of_times_and_ever_more_slowly() {
        let mut tries = Tries::default();
        let mut pauses = Vec::new();
        while let Decision::Respawn(respawn) = decide(&starved(7, 4096), 3, &mut tries) {
            pauses.push(respawn.after);
        }
        assert_eq!(pauses.len(), STARVED_MAX as usize);
        assert_eq!(pauses[0], Duration::ZERO, "what the dead had used may be enough");
        assert!(pauses.is_sorted() && pauses[1] < pauses[7] && pauses[7] < Duration::from_secs(10), "{pauses:?}");
    }

    #[test]
    fn a_commit_another_limit_or_another_death_starts_the_count_again() {
        let mut tries = Tries::default();
        let mut recovers = |now| assert_eq!(decide(&now, 3, &mut tries), respawn(libc::SIGKILL));
        for n in 0..50 {
            recovers(starved(n, 4096));
            recovers(starved(n, 8192));
        }
        recovers(Death { seq: 49, ..Death::plain(KILLED) });
        recovers(starved(49, 8192));
    }

    #[test]
    fn restores_that_never_finish_are_bounded_and_the_later_ones_wait_a_little() {
        let mut tries = Tries::default();
        let decisions: Vec<_> = (0..=UNFINISHED_MAX).map(|_| decide(&Death::plain(KILLED), 3, &mut tries)).collect();
        let waits = decisions.iter().map(|decision| match decision {
            Decision::Respawn(respawn) => Some(respawn.after),
            _ => None,
        });
        let waits: Vec<_> = waits.flatten().collect();
        assert_eq!(waits.len(), UNFINISHED_MAX as usize);
        assert_eq!(decisions.last(), Some(&Decision::GiveUp(Cause::Signal(libc::SIGKILL))));
        assert!(waits[0].is_zero() && !waits[UNFINISHED_MAX as usize - 1].is_zero());
    }
}
