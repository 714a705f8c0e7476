//! What it costs to enter a code section and to leave it, by each way in which one is named.

use crate::failure::Outcome;
use crate::measurement::{Collected, Measurement};
use crate::promise::{Promise, Relation, Unit};
use crate::trial::Trial;
use crate::user::User;
use crate::workshop::Workshop;

pub struct Sections;

const OPTIONS: &[&str] = &["--hang", "--sections", "hollow"];
/// Names, what is measured, and what is promised.
const PROMISES: [(&str, &str, Relation, f64); 3] = [
    ("section-named", "a section with a name, entered and left", Relation::Whole, 20.0),
    ("section-function", "a function that its compiler has tell of itself, entered and left", Relation::Whole, 20.0),
    ("section-probed", "a function of an unchanged program with breakpoints, called", Relation::Added, 5000.0),
];

impl Measurement for Sections {
    fn name(&self) -> String {
        "code sections".into()
    }

    fn promises(&self) -> Vec<Promise> {
        let promise = |(id, what, relation, limit): &(&str, &str, Relation, f64)| Promise {
            id: (*id).into(),
            what: (*what).into(),
            unit: Unit::Nanoseconds,
            relation: *relation,
            limit: *limit,
        };
        PROMISES.iter().map(promise).collect()
    }

    fn rounds(&self) -> usize {
        5
    }

    fn round(&mut self, number: usize, workshop: &Workshop, collected: &mut Collected) -> Outcome<()> {
        let before = vec![workshop.executable("sections").into()];
        let after = vec!["50".into(), "2000".into()];
        let trial = Trial { user: User::Own, before, after, figures: PROMISES.len() };
        let (native, protected, conditions) = trial.pair(number, workshop, OPTIONS)?;
        collected.conditions(&conditions);
        for ((id, ..), (native, protected)) in PROMISES.iter().zip(native.into_iter().zip(protected)) {
            collected.add(id, Some(native), protected);
        }
        Ok(())
    }
}
