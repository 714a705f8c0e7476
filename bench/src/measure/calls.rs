//! Calls that pass through: what the gate adds to a system call that nobody can see.

use crate::failure::Outcome;
use crate::measurement::{Collected, Measurement};
use crate::promise::{Promise, Relation, Unit};
use crate::trial::Trial;
use crate::user::User;
use crate::workshop::Workshop;

pub struct Calls;

const LIMITS: [(&str, f64); 3] = [("getppid", 20.0), ("pread", 120.0), ("poll", 100.0)];

impl Measurement for Calls {
    fn name(&self) -> String {
        "calls that pass through".into()
    }

    fn promises(&self) -> Vec<Promise> {
        let promise = |(call, limit): &(&str, f64)| Promise {
            id: format!("call-{call}"),
            what: format!("{call} at a rewritten site, with an anchor"),
            unit: Unit::Nanoseconds,
            relation: Relation::Added,
            limit: *limit,
        };
        LIMITS.iter().map(promise).collect()
    }

    fn rounds(&self) -> usize {
        9
    }

    fn round(&mut self, number: usize, workshop: &Workshop, collected: &mut Collected) -> Outcome<()> {
        let file = workshop.put(User::Own, "file", &[7; 4096])?;
        let after = vec![file.into(), "100".into(), "500".into()];
        let before = vec![workshop.executable("calls").into()];
        let trial = Trial { user: User::Own, before, after, figures: LIMITS.len() };
        let (native, protected, conditions) = trial.pair(number, workshop, &[])?;
        collected.conditions(&conditions);
        if conditions.rewritten == 0 {
            collected.note("no call site was rewritten: every call came in by a signal");
        }
        for ((call, _), (native, protected)) in LIMITS.iter().zip(native.into_iter().zip(protected)) {
            collected.add(&format!("call-{call}"), Some(native), protected);
        }
        Ok(())
    }
}
