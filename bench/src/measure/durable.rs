//! Commits of a store on a disk that reach the medium some time later, beside those that are there before what they stand before.

use crate::failure::{Outcome, Tried};
use crate::launch::Side;
use crate::measurement::{Collected, Measurement};
use crate::promise::{Promise, Relation, Unit};
use crate::trial::Trial;
use crate::user::User;
use crate::workshop::Workshop;
use std::ffi::OsString;

pub struct Durable;

const LATER: &str = "commit-durable-200ms";
const SAVED: &str = "commit-durable-saved";

impl Measurement for Durable {
    fn name(&self) -> String {
        "commits on a medium".into()
    }

    fn promises(&self) -> Vec<Promise> {
        vec![
            Promise {
                id: LATER.into(),
                what: "commit and write 1 byte, 1 hot page of 10 MB, on the medium within 200 ms".into(),
                unit: Unit::Microseconds,
                relation: Relation::Whole,
                limit: 10.0,
            },
            Promise {
                id: SAVED.into(),
                what: "the same, more than with every commit on the medium first".into(),
                unit: Unit::Percent,
                relation: Relation::Overhead,
                limit: -90.0,
            },
        ]
    }

    fn rounds(&self) -> usize {
        5
    }

    fn round(&mut self, number: usize, workshop: &Workshop, collected: &mut Collected) -> Outcome<()> {
        // Temporary files that outlive a boot lie on a medium.
        let disk = tempfile::tempdir_in("/var/tmp").tried("make a folder in /var/tmp")?;
        let store = disk.path().to_string_lossy().into_owned();
        // Several syncs fall into a batch.
        let kinds = [("200ms", ["5", "200000"]), ("visible", ["5", "50"])];
        let mut took = [0.0; 2];
        for turn in 0..2 {
            let side = (number + turn) % 2;
            let (when, [batches, iterations]) = kinds[side];
            let after = ["10", "hot", batches, iterations, "1"].map(OsString::from).to_vec();
            let before = vec![workshop.executable("commit").into()];
            let trial = Trial { user: User::Own, before, after, figures: 1 };
            let (figures, conditions) =
                trial.run(workshop, Side::Protected(&["--commit", "each", "--store", &store, "--durable", when]))?;
            took[side] = figures[0] / 1000.0;
            collected.conditions(&conditions);
        }
        let [later, first] = took;
        collected.add(LATER, None, later);
        collected.add(SAVED, Some(first / 1000.0), later / 1000.0);
        Ok(())
    }
}
