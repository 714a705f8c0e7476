//! What threads add: commits beside threads that wait or compute, and threads that all print.

use crate::failure::Outcome;
use crate::measurement::{Collected, Measurement};
use crate::promise::{Promise, Relation, Unit};
use crate::trial::{Trial, EACH};
use crate::user::User;
use crate::workshop::Workshop;

pub struct Threads;

const PRINTING: &str = "threads-printing";
const PRINTING_EACH: &str = "threads-printing-each";
const COMPUTING: &str = "threads-computing-4";
/// Which promise a figure of the program is for, less that of one thread alone.
const WAITING: [(&str, usize, f64); 2] = [("threads-waiting-4", 4, 2.0), ("threads-waiting-16", 16, 5.0)];

impl Measurement for Threads {
    fn name(&self) -> String {
        "threads".into()
    }

    fn promises(&self) -> Vec<Promise> {
        let beside = |(id, count, limit): &(&str, usize, f64)| Promise {
            id: (*id).into(),
            what: format!("commit and write 1 byte beside {count} threads that wait, more than alone"),
            unit: Unit::Microseconds,
            relation: Relation::Whole,
            limit: *limit,
        };
        let mut all: Vec<Promise> = WAITING.iter().map(beside).collect();
        all.push(Promise {
            id: COMPUTING.into(),
            what: "commit and write 1 byte beside 4 threads that compute on 2 processors".into(),
            unit: Unit::Microseconds,
            relation: Relation::Whole,
            limit: 80.0,
        });
        for (id, how) in [(PRINTING, ""), (PRINTING_EACH, ", a commit for each")] {
            all.push(Promise {
                id: id.into(),
                what: format!("4 threads that all print, a thousand prints{how}, more than native"),
                unit: Unit::Percent,
                relation: Relation::Overhead,
                limit: 100.0,
            });
        }
        all
    }

    fn rounds(&self) -> usize {
        9
    }

    fn round(&mut self, number: usize, workshop: &Workshop, collected: &mut Collected) -> Outcome<()> {
        let before = vec![workshop.executable("threads").into()];
        let trial = Trial { user: User::Own, before, after: vec!["40".into(), "200".into()], figures: 5 };
        let (native, protected, conditions) = trial.pair(number, workshop, EACH)?;
        collected.conditions(&conditions);
        let micros = |figures: &[f64], i: usize| figures[i] / 1000.0;
        collected.add(PRINTING_EACH, Some(micros(&native, 0)), micros(&protected, 0));
        for (i, (id, ..)) in WAITING.iter().enumerate() {
            let more = |figures: &[f64]| micros(figures, 2 + i) - micros(figures, 1);
            collected.add(id, Some(more(&native)), more(&protected));
        }
        collected.add(COMPUTING, Some(micros(&native, 4)), micros(&protected, 4));
        let (native, protected, _) = trial.pair(number, workshop, &[])?;
        collected.add(PRINTING, Some(micros(&native, 0)), micros(&protected, 0));
        Ok(())
    }
}
