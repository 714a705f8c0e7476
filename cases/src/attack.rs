//! Kinds of attack: what the hammer hits, and with what.

use std::time::Duration;

use rustix::process::Signal;

use crate::case::Case;
use crate::hammer::{Plan, Target};

/// How a test harms its program; the first part of the test's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attack {
    /// SIGKILL at any moment.
    Kill,
    /// SIGKILL in each phase in turn, rare ones too.
    Aimed,
    /// Fatal signals that a bug would cause, sent from outside.
    Fatal,
    /// The anchor is killed, and the program too.
    Anchor,
    /// Everything that carries the program's name.
    Named,
    /// Nothing: the program fails by itself, or only must not be changed by being protected.
    Calm,
}

const FATAL: [Signal; 5] = [Signal::SEGV, Signal::ABORT, Signal::BUS, Signal::FPE, Signal::ILL];

impl Attack {
    pub const fn name(self) -> &'static str {
        match self {
            Attack::Kill => "kill",
            Attack::Aimed => "aimed",
            Attack::Fatal => "fatal",
            Attack::Anchor => "anchor",
            Attack::Named => "named",
            Attack::Calm => "calm",
        }
    }

    /// What the hammer shall do to `case` with `blows` blows left; `round` counts the runs of this test.
    pub fn plan(self, case: &Case, blows: u32, round: u32) -> Plan {
        let plan =
            Plan { targets: vec![Target::Program], signals: vec![Signal::KILL], pace: case.pace, aim: None, blows };
        match self {
            Attack::Kill => plan,
            Attack::Aimed => Plan { aim: Some(aimed_at(round)), blows: blows.min(8), ..plan },
            Attack::Fatal => Plan { signals: FATAL.to_vec(), ..plan },
            Attack::Anchor => Plan {
                targets: vec![Target::Anchor, Target::Program],
                pace: (Duration::from_millis(3), Duration::from_millis(15)),
                ..plan
            },
            Attack::Named => Plan { targets: vec![Target::Named], ..plan },
            Attack::Calm => Plan { blows: 0, ..plan },
        }
    }
}

/// Phases in turn, beginning with the first after "start".
fn aimed_at(round: u32) -> usize {
    let phases = outlast_image::event::phase::NAMES.len();
    1 + round as usize % (phases - 1)
}
