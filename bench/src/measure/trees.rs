//! What it takes a process of a tree to write to memory that it shares, to make a child, and to fork when it is large.

use crate::failure::Outcome;
use crate::measurement::{Collected, Measurement};
use crate::promise::{Promise, Relation, Unit};
use crate::trial::Trial;
use crate::user::User;
use crate::workshop::Workshop;

pub struct Trees;

const STORE: &str = "tree-store";
const CHILD: &str = "tree-child";
const FORK: &str = "tree-fork-500mb";
const ROUNDS: u32 = 15;
const MEGABYTES: u32 = 500;

impl Measurement for Trees {
    fn name(&self) -> String {
        "processes of a tree".into()
    }

    fn promises(&self) -> Vec<Promise> {
        vec![
            Promise::new(STORE, "a write to memory that two processes share", Unit::Microseconds, Relation::Added, 2.0),
            Promise::new(
                CHILD,
                "fork, exec and wait of a small child, more than native",
                Unit::Milliseconds,
                Relation::Added,
                3.0,
            ),
            Promise::new(
                FORK,
                "until a fork returns to a process of 500 MB",
                Unit::Milliseconds,
                Relation::Whole,
                20.0,
            ),
        ]
    }

    fn rounds(&self) -> usize {
        5
    }

    fn round(&mut self, number: usize, workshop: &Workshop, collected: &mut Collected) -> Outcome<()> {
        let before = vec![workshop.executable("trees").into()];
        let after = [ROUNDS, MEGABYTES].map(|number| number.to_string().into()).to_vec();
        let trial = Trial { user: User::Own, before, after, figures: 3 };
        let (native, protected, conditions) = trial.pair(number, workshop, &["--tree"])?;
        collected.add(STORE, Some(native[0] / 1e3), protected[0] / 1e3);
        collected.add(CHILD, Some(native[1] / 1e6), protected[1] / 1e6);
        collected.add(FORK, Some(native[2] / 1e6), protected[2] / 1e6);
        collected.conditions(&conditions);
        Ok(())
    }
}
