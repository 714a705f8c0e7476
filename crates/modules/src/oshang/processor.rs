//! One processor's two counters. What counts is processor time of who runs there, as the timer's ticks find it: it stands still while the
//! hypervisor runs others, so that stolen time is no hang.

use super::slices::Slices;
use super::AGAIN;
use outlast_interfaces::oshang::Settings;
use outlast_interfaces::schl::{self, Running, Starved, Stays};
use std::time::Duration;

#[derive(Default)]
pub struct Processor {
    slices: Slices,
    before: Option<schl::Processor>,
    /// Since when the processor has not switched while it should: what who runs there had computed by then.
    began: Option<Running>,
    /// How long nothing at all has been counted.
    stands: Duration,
    /// How long who runs there has been alone, and in the kernel.
    alone: Duration,
    /// Who was told of last, and when.
    told: Option<(i32, Duration)>,
    /// What runs now is told of: its slice is not one to learn from.
    is_told: bool,
}

/// What is to be thought of a processor.
pub enum Seen {
    Well,
    /// Nobody waits there, so that it need not switch; but whether it could is not known.
    Alone,
    Starves(Starved),
}

impl Processor {
    /// It was looked at; `passed` is the time since the look before.
    pub fn see(&mut self, now: &schl::Processor, at: Duration, passed: Duration, settings: &Settings) -> Seen {
        if now.is_preempted && self.before.is_some_and(|before| before.runs.is_some_and(|runs| runs.is_realtime)) {
            // Whose processor it is will be seen at the next look; that it switched for this one says nothing.
            return Seen::Well;
        }
        let Some(before) = self.before.replace(*now) else { return Seen::Well };
        let switched = now.switches.wrapping_sub(before.switches);
        if switched > 0 && !has_only_been_preempted(&before, now) {
            self.has_switched(&before, switched, passed);
            return Seen::Well;
        }
        match (before.runs, now.runs) {
            // Nobody wants to run there.
            (None, None) if now.waiting == 0 => self.begin_anew(),
            // Nobody waits for its end: a lone thread that computes in user mode may go on as long as it likes.
            (Some(then), Some(runs)) if now.waiting == 0 && runs.user > then.user => self.begin_anew(),
            (_, Some(_)) if now.waiting == 0 => {
                self.began = None;
                self.stands = Duration::ZERO;
                self.alone += passed;
                if self.alone >= settings.timeout {
                    self.alone = Duration::ZERO;
                    return Seen::Alone;
                }
            }
            (then, runs) => return self.waits(now, (then, runs), at, passed, settings),
        }
        Seen::Well
    }

    /// Somebody waits, and it did not switch.
    fn waits(
        &mut self,
        now: &schl::Processor,
        (then, runs): (Option<Running>, Option<Running>),
        at: Duration,
        passed: Duration,
        settings: &Settings,
    ) -> Seen {
        let counted = |of: Option<Running>| of.map(|runs| counted(&runs));
        self.stands = if counted(runs) == counted(then) { self.stands + passed } else { Duration::ZERO };
        let why = match (runs, self.began) {
            (Some(runs), Some(began)) if runs.thread == began.thread => {
                let in_user_mode = runs.user.saturating_sub(began.user);
                let count = in_user_mode.saturating_add(runs.kernel.saturating_sub(began.kernel));
                let check = self.slices.check_value(settings);
                (count > check).then_some(Stays::Computes { count, in_user_mode, check })
            }
            _ => {
                self.began = runs;
                None
            }
        };
        let stands = (self.stands > settings.timeout).then_some(Stays::Stands { since: self.stands });
        let Some(why) = why.or(stands) else { return Seen::Well };
        self.is_told = true;
        let who = runs.map_or(0, |runs| runs.thread);
        if self.told.is_some_and(|(before, when)| before == who && at.saturating_sub(when) < AGAIN) {
            return Seen::Well;
        }
        self.told = Some((who, at));
        Seen::Starves(Starved::Processor { number: now.number, waiting: now.waiting, runs, why })
    }

    /// Learns from the slice that has ended, unless that was a hang.
    fn has_switched(&mut self, before: &schl::Processor, switched: u64, passed: Duration) {
        let count = match (self.began, before.runs) {
            (Some(began), Some(last)) if began.thread == last.thread => counted(&last).saturating_sub(counted(&began)),
            _ => Duration::ZERO,
        };
        if !self.is_told {
            self.slices.ended(count, switched - 1, passed);
        }
        self.begin_anew();
    }

    fn begin_anew(&mut self) {
        (self.began, self.stands, self.alone, self.is_told) = (None, Duration::ZERO, Duration::ZERO, false);
    }
}

/// Whether a real-time thread has the processor as before and never gave it up: whom it was taken from for, the kernel's own threads that
/// stop processors, or a look, is before it anyhow, and who waits for it got nothing.
fn has_only_been_preempted(before: &schl::Processor, now: &schl::Processor) -> bool {
    match (before.runs, now.runs) {
        (Some(then), Some(runs)) => {
            runs.is_realtime && (runs.thread, runs.yields) == (then.thread, then.yields) && now.waiting > 0
        }
        _ => false,
    }
}

/// Another node may say anything.
fn counted(runs: &Running) -> Duration {
    runs.user.saturating_add(runs.kernel)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// A machine of one processor, looked at every 100 ms.
    #[derive(Default)]
    struct Machine {
        processor: Processor,
        at: u64,
        switches: u64,
        user: u64,
        kernel: u64,
        is_realtime: bool,
        yields: u64,
        is_preempted: bool,
    }

    impl Machine {
        fn look(&mut self, waiting: u32, thread: i32) -> Seen {
            self.at += 100;
            let (user, kernel) = (ms(self.user), ms(self.kernel));
            let (is_realtime, yields) = (self.is_realtime, self.yields);
            let runs = Running { thread, process: thread, user, kernel, is_realtime, yields };
            let runs = (thread != 0).then_some(runs);
            let is_preempted = self.is_preempted;
            let now = schl::Processor { number: 0, switches: self.switches, waiting, runs, is_preempted };
            self.processor.see(&now, ms(self.at), ms(100), &Settings::default())
        }

        /// So many looks in which `step` happens before each; the first at which something is flagged.
        fn looks(&mut self, count: u64, waiting: u32, thread: i32, step: impl Fn(&mut Self)) -> Option<(u64, Starved)> {
            (1..=count).find_map(|n| {
                step(self);
                match self.look(waiting, thread) {
                    Seen::Starves(what) => Some((n, what)),
                    _ => None,
                }
            })
        }
    }

    fn why(found: Option<(u64, Starved)>) -> Option<Stays> {
        match found? {
            (_, Starved::Processor { why, .. }) => Some(why),
            _ => None,
        }
    }

    #[test]
    fn who_keeps_others_waiting_beyond_the_check_value_is_flagged_once() {
        let mut machine = Machine::default();
        let computes = |machine: &mut Machine| machine.user += 100;
        assert_eq!(
            machine.looks(100, 3, 7, |machine| (machine.switches, machine.user) =
                (machine.switches + 30, machine.user + 3)),
            None
        );
        // One that was there when it was looked at first, and one since which it counts.
        let found = machine.looks(100, 3, 7, computes).expect("it hangs");
        assert_eq!(found.0, 7);
        let stays = Stays::Computes { count: ms(600), in_user_mode: ms(600), check: ms(500) };
        assert_eq!(why(Some(found)), Some(stays));
        assert_eq!(machine.looks(1000, 3, 7, computes), None);
        // Of another one it is told.
        machine.switches += 1;
        assert!(machine.looks(10, 3, 8, computes).is_some());
    }

    #[test]
    fn a_hang_teaches_nothing() {
        let mut machine = Machine::default();
        for thread in 1..100 {
            machine.switches += 1;
            let found = machine.looks(9, 1, thread, |machine| machine.kernel += 100);
            let Some(Stays::Computes { check, in_user_mode, .. }) = why(found) else { panic!("{thread} is not found") };
            assert_eq!((check, in_user_mode), (ms(500), ms(0)));
        }
    }

    #[test]
    fn a_real_time_thread_that_is_preempted_for_a_moment_and_never_gives_up_is_flagged() {
        let preempted =
            |machine: &mut Machine| (machine.switches, machine.user) = (machine.switches + 2, machine.user + 99);
        let mut machine = Machine { is_realtime: true, ..Machine::default() };
        assert!(machine.looks(10, 1, 7, preempted).is_some());
        let mut usual = Machine::default();
        assert_eq!(usual.looks(100, 1, 7, preempted), None);
        // One that sleeps lets others run.
        let mut machine = Machine { is_realtime: true, ..Machine::default() };
        let sleeps = |machine: &mut Machine| {
            preempted(machine);
            machine.yields += 1;
        };
        assert_eq!(machine.looks(100, 1, 7, sleeps), None);
        assert_eq!(machine.looks(100, 0, 7, preempted), None);
    }

    #[test]
    fn a_look_in_the_midst_of_anothers_look_changes_nothing() {
        let mut machine = Machine { is_realtime: true, ..Machine::default() };
        let computes = |machine: &mut Machine| machine.user += 100;
        assert_eq!(machine.looks(4, 1, 7, computes), None);
        // The other's thread has the processor at this moment.
        (machine.is_preempted, machine.switches) = (true, machine.switches + 1);
        assert_eq!(machine.looks(1, 2, 99, |_| ()), None);
        (machine.is_preempted, machine.switches) = (false, machine.switches + 1);
        let found = machine.looks(4, 1, 7, computes);
        assert!(matches!(why(found), Some(Stays::Computes { check, .. }) if check == ms(500)));
    }

    #[test]
    fn a_lone_thread_in_user_mode_goes_on_as_long_as_it_likes() {
        let mut machine = Machine::default();
        assert_eq!(machine.looks(100_000, 0, 7, |machine| machine.user += 100), None);
        assert_eq!(machine.processor.slices.check_value(&Settings::default()), ms(500));
    }

    #[test]
    fn somebody_is_to_wait_for_a_lone_thread_in_the_kernel() {
        let mut machine = Machine::default();
        let alone = |machine: &mut Machine| {
            machine.kernel += 100;
            matches!(machine.look(0, 7), Seen::Alone)
        };
        let times = (0..200).filter(|_| alone(&mut machine)).count();
        assert_eq!(times, 3, "every five seconds");
        // That one gets the processor, or waits.
        machine.switches += 2;
        assert_eq!(machine.looks(20, 0, 7, |machine| machine.kernel += 100), None);
        assert!(machine.looks(20, 1, 7, |machine| machine.kernel += 100).is_some());
    }

    #[test]
    fn stolen_time_is_no_hang_until_it_is_very_long() {
        let mut machine = Machine::default();
        let step = |machine: &mut Machine| machine.user += 10;
        // A tenth of it is its own: less than the check value within four seconds.
        assert_eq!(machine.looks(40, 1, 7, step), None);
        let mut machine = Machine::default();
        let (after, what) = machine.looks(100, 1, 7, |_| ()).expect("nothing goes on");
        assert_eq!((after, why(Some((after, what)))), (52, Some(Stays::Stands { since: ms(5100) })));
    }

    #[test]
    fn an_idle_processor_for_which_somebody_waits_is_flagged_and_one_for_which_nobody_waits_is_not() {
        let mut machine = Machine::default();
        assert_eq!(machine.looks(10_000, 0, 0, |_| ()), None);
        assert!(matches!(why(machine.looks(100, 1, 0, |_| ())), Some(Stays::Stands { .. })));
    }
}
