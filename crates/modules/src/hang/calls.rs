//! Calls of a component: which of them should have ended by now.

use outlast_interfaces::comp::{Call, Hang, Look, Stays};
use outlast_interfaces::hang::OfComponent;
use std::collections::BTreeMap;
use std::time::Duration;

/// Of one component.
pub struct Calls {
    settings: OfComponent,
    seen: BTreeMap<u32, Seen>,
}

/// A call that ought to end, as it was seen first.
#[derive(Clone, Copy)]
struct Seen {
    number: u32,
    since: Duration,
    /// Calls that had ended when the last of them was seen to end, and when that was.
    completed: u64,
    still: Duration,
}

impl Calls {
    pub fn new(settings: OfComponent) -> Self {
        Self { settings, seen: BTreeMap::new() }
    }

    /// From now on.
    pub fn set(&mut self, settings: OfComponent) {
        self.settings = settings;
    }

    /// The instance has.
    pub fn have_ended(&mut self) {
        self.seen.clear();
    }

    /// Takes note of what is under way. A call that should have ended, or gone on, by now, if there is one.
    pub fn see(&mut self, look: &Look) -> Option<Hang> {
        let before = std::mem::take(&mut self.seen);
        let mut hang = None;
        for call in &look.calls {
            let why = match call.waits_until {
                Some(until) => self.overdue(look.at.saturating_sub(until)),
                None => {
                    let seen = see(before.get(&call.place), call, look);
                    self.seen.insert(call.place, seen);
                    self.too_long(&seen, look.at)
                }
            };
            hang = hang.or(why.map(|why| Hang { operation: call.operation, why }));
        }
        hang
    }

    fn overdue(&self, late: Duration) -> Option<Stays> {
        (late > self.settings.still).then_some(Stays::Overdue(late))
    }

    fn too_long(&self, seen: &Seen, now: Duration) -> Option<Stays> {
        let (still, alone) = (now.saturating_sub(seen.still), now.saturating_sub(seen.since));
        if still > self.settings.still {
            return Some(Stays::Still(still));
        }
        (alone > self.settings.alone).then_some(Stays::Alone(alone))
    }
}

fn see(before: Option<&Seen>, call: &Call, look: &Look) -> Seen {
    let fresh = Seen { number: call.number, since: look.at, completed: look.completed, still: look.at };
    match before.filter(|seen| seen.number == call.number) {
        None => fresh,
        Some(seen) if seen.completed == look.completed => *seen,
        Some(seen) => Seen { since: seen.since, ..fresh },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_interfaces::hang::USUAL;

    fn at(seconds: f64, completed: u64, calls: &[Call]) -> Look {
        Look { at: Duration::from_secs_f64(seconds), completed, calls: calls.to_vec() }
    }

    fn call(place: u32, number: u32) -> Call {
        Call { place, number, operation: place + 100, waits_until: None }
    }

    #[test]
    fn a_call_hangs_if_no_other_ends_either_and_in_the_end_if_others_do() {
        let mut calls = Calls::new(USUAL);
        assert_eq!(calls.see(&at(7.0, 5, &[call(3, 1)])), None);
        assert_eq!(calls.see(&at(9.0, 5, &[call(3, 1)])), None);
        let hang = calls.see(&at(9.001, 5, &[call(3, 1)]));
        assert_eq!(hang, Some(Hang { operation: 103, why: Stays::Still(Duration::from_secs_f64(2.001)) }));
        // The other one ends and is made again, time and again.
        let mut calls = Calls::new(USUAL);
        for turn in 0..=20 {
            let now = at(f64::from(turn) / 2.0, u64::from(turn), &[call(3, 1), call(4, turn)]);
            assert_eq!(calls.see(&now), None, "turn {turn}");
        }
        let hang = calls.see(&at(10.5, 21, &[call(3, 1), call(4, 21)]));
        assert_eq!(hang, Some(Hang { operation: 103, why: Stays::Alone(Duration::from_secs_f64(10.5)) }));
        calls.have_ended();
        assert_eq!(calls.see(&at(11.0, 21, &[call(3, 1), call(4, 21)])), None);
    }

    #[test]
    fn calls_that_end_do_not_hang_however_many_follow_at_their_places() {
        let mut calls = Calls::new(USUAL);
        for turn in 0..1000 {
            // Nobody sees one end: only its number tells.
            assert_eq!(calls.see(&at(f64::from(turn), 5, &[call(3, turn)])), None);
        }
    }

    #[test]
    fn a_call_that_waits_hangs_once_it_was_to_go_on() {
        let mut calls = Calls::new(USUAL);
        let waits = Call { waits_until: Some(Duration::from_secs(60)), ..call(3, 1) };
        for seconds in [1, 30, 60, 62] {
            assert_eq!(calls.see(&at(f64::from(seconds), 5, &[waits])), None);
        }
        let hang = calls.see(&at(62.5, 5, &[waits]));
        assert_eq!(hang, Some(Hang { operation: 103, why: Stays::Overdue(Duration::from_millis(2500)) }));
        // Time that it waited is none in which it was under way.
        assert_eq!(calls.see(&at(62.5, 5, &[call(3, 1)])), None);
        assert_eq!(calls.see(&at(64.5, 5, &[call(3, 1)])), None);
        assert!(calls.see(&at(64.6, 5, &[call(3, 1)])).is_some());
    }
}
