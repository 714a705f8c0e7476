//! Classes of outcomes.

use crate::waiting::Ending;
use outlast_supervisor::end::End;
use serde::{Deserialize, Serialize};

/// What became of a run, as seen from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The fault did not strike, or is known to have had no effect.
    NotActivated,
    /// As without a fault.
    Correct,
    /// The program told of a failure by its own exit status, or its client saw one.
    Error,
    /// A signal ended it.
    Crash,
    /// It did not end in time, or printed without end.
    Hang,
    /// It ended as if all were well, and what it left is wrong; but outlast had said that it went back to an older generation,
    /// after which what was sent is sent again.
    WentBack,
    /// It ended as if all were well, and what it left is wrong.
    FailSilence,
    /// The fault cannot be injected here.
    Impossible,
}

pub const ALL: [Outcome; 8] = [
    Outcome::NotActivated,
    Outcome::Correct,
    Outcome::Error,
    Outcome::Crash,
    Outcome::Hang,
    Outcome::WentBack,
    Outcome::FailSilence,
    Outcome::Impossible,
];

impl Outcome {
    pub fn name(self) -> &'static str {
        match self {
            Outcome::NotActivated => "not activated",
            Outcome::Correct => "correct",
            Outcome::Error => "error",
            Outcome::Crash => "crash",
            Outcome::Hang => "hang",
            Outcome::WentBack => "went back",
            Outcome::FailSilence => "fail-silence violation",
            Outcome::Impossible => "impossible",
        }
    }
}

/// A class of RMK's Table 4, and which of ours it is.
pub struct Category {
    pub name: &'static str,
    pub what: &'static str,
    /// None: it is about the kernel, and needs the kernel side.
    pub ours: &'static [Outcome],
}

/// RMK, Table 4. There the fault is in the kernel and what it does is seen in a program; here it is in the program, whose exceptions are
/// signals.
pub const CATEGORIES: [Category; 6] = [
    Category {
        name: "correct output",
        what: "the output is correct; the fault was not activated, or not manifested",
        ours: &[Outcome::NotActivated, Outcome::Correct],
    },
    Category {
        name: "fail-silence violation",
        what: "it ends as if all were well, and the output is wrong",
        ours: &[Outcome::FailSilence, Outcome::WentBack],
    },
    Category {
        name: "exception",
        what: "it terminates abnormally, or tells of a failure",
        ours: &[Outcome::Crash, Outcome::Error],
    },
    Category { name: "hang", what: "it does not complete", ours: &[Outcome::Hang] },
    Category { name: "kernel exception", what: "the kernel raises an exception", ours: &[] },
    Category { name: "silent hang", what: "the kernel hangs without reporting any exception", ours: &[] },
];

/// What is known of a run.
pub struct Facts {
    pub ending: Ending,
    pub end: Option<End>,
    pub expected: Option<End>,
    /// Nobody can tell it from an unharmed one.
    pub same: bool,
    pub struck: bool,
    pub activated: Option<bool>,
    /// Its client ended in another way than that of an unharmed run.
    pub client_failed: bool,
    /// Outlast noticed something.
    pub detected: bool,
    /// Outlast said that it went back to an older generation.
    pub went_back: bool,
}

pub fn outcome(facts: &Facts) -> Outcome {
    let idle = !facts.struck || facts.activated == Some(false) && !facts.detected;
    match (facts.ending, facts.end) {
        (Ending::TooLate | Ending::Flood, _) => Outcome::Hang,
        (Ending::Deserted, _) => Outcome::Error,
        _ if facts.same && idle => Outcome::NotActivated,
        _ if facts.same => Outcome::Correct,
        (_, Some(End::Killed(_))) if facts.end != facts.expected => Outcome::Crash,
        _ if facts.end != facts.expected || facts.client_failed => Outcome::Error,
        _ if facts.went_back => Outcome::WentBack,
        _ => Outcome::FailSilence,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        let end = Some(End::Exited(0));
        Facts {
            ending: Ending::Ended,
            end,
            expected: end,
            same: true,
            struck: true,
            activated: None,
            client_failed: false,
            detected: false,
            went_back: false,
        }
    }

    #[test]
    fn every_class_of_a_run_that_was_one_is_of_one_category() {
        for class in ALL.into_iter().filter(|class| *class != Outcome::Impossible) {
            let of = CATEGORIES.iter().filter(|category| category.ours.contains(&class)).count();
            assert_eq!(of, 1, "{class:?}");
        }
    }

    #[test]
    fn every_class_has_its_facts() {
        assert_eq!(outcome(&facts()), Outcome::Correct);
        assert_eq!(outcome(&Facts { struck: false, ..facts() }), Outcome::NotActivated);
        assert_eq!(outcome(&Facts { activated: Some(false), ..facts() }), Outcome::NotActivated);
        assert_eq!(outcome(&Facts { activated: Some(false), detected: true, ..facts() }), Outcome::Correct);
        assert_eq!(outcome(&Facts { same: false, ..facts() }), Outcome::FailSilence);
        assert_eq!(outcome(&Facts { same: false, went_back: true, ..facts() }), Outcome::WentBack);
        let killed = Facts { same: false, end: Some(End::Killed(11)), ..facts() };
        assert_eq!(outcome(&killed), Outcome::Crash);
        assert_eq!(outcome(&Facts { same: false, end: Some(End::Exited(2)), ..facts() }), Outcome::Error);
        assert_eq!(outcome(&Facts { same: false, client_failed: true, ..facts() }), Outcome::Error);
        assert_eq!(outcome(&Facts { ending: Ending::Deserted, end: None, same: false, ..facts() }), Outcome::Error);
        assert_eq!(outcome(&Facts { ending: Ending::TooLate, end: None, same: false, ..facts() }), Outcome::Hang);
    }
}
