//! Kinds of attack: what the hammer hits, and with what.

use std::time::Duration;

use outlast_image::degradation::Degradation;
use outlast_image::event::phase;
use rustix::process::Signal;

use crate::blow::Target;
use crate::case::Case;
use crate::hammer::Plan;
use crate::launch::NAME;
use crate::setting::Setting;

/// How a test harms its program; the first part of the test's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attack {
    /// SIGKILL at any moment.
    Kill,
    /// SIGKILL at any moment, while every commit is compared with all of memory: one that has missed a page ends protection.
    Checked,
    /// SIGKILL at any moment, while a timer asks for commits at any moment.
    Periodic,
    /// SIGKILL at any moment, with every commit on the medium before what it stands before.
    Durable,
    /// SIGKILL at any moment, with commits that reach the medium some time later.
    Lagging,
    /// Supervisor, anchor and program at once, with commits that reach the medium some time later.
    LaggingEverything,
    /// SIGKILL at any moment, while commits are taken at any moment but none before visible events: what was done to files since
    /// the commit is undone.
    Manual,
    /// SIGKILL in each phase in turn, rare ones too.
    Aimed,
    /// Fatal signals that a bug would cause, sent from outside.
    Fatal,
    /// The anchor or the program.
    Anchor,
    /// Anchor and program at once: nothing is left but the store.
    Together,
    /// The supervisor or the program; the next command takes over.
    Supervisor,
    /// Supervisor, anchor and program at once; `outlast resume` brings the program back.
    Everything,
    /// Everything that carries the program's name.
    Named,
    /// A debugger attaches and detaches, between kills.
    Debugged,
    /// The program is stopped and continued, between kills. (Calls like epoll_wait then fail with EINTR: no case for this.)
    Stopped,
    /// SIGKILL inside operations, without io_uring: measures the window that is left there.
    Window,
    /// Nothing: the program fails by itself, or only must not be changed by being protected.
    Calm,
}

const FATAL: [Signal; 5] = [Signal::SEGV, Signal::ABORT, Signal::BUS, Signal::FPE, Signal::ILL];

impl Attack {
    pub const fn name(self) -> &'static str {
        match self {
            Attack::Kill => "kill",
            Attack::Checked => "checked",
            Attack::Periodic => "periodic",
            Attack::Durable => "durable",
            Attack::Lagging => "lagging",
            Attack::LaggingEverything => "lagging-everything",
            Attack::Manual => "manual",
            Attack::Aimed => "aimed",
            Attack::Fatal => "fatal",
            Attack::Anchor => "anchor",
            Attack::Together => "together",
            Attack::Supervisor => "supervisor",
            Attack::Everything => "everything",
            Attack::Named => "named",
            Attack::Debugged => "debugged",
            Attack::Stopped => "stopped",
            Attack::Window => "window",
            Attack::Calm => "calm",
        }
    }

    /// Options of `outlast run` that it takes.
    pub fn options(self) -> &'static [&'static str] {
        match self {
            Attack::Checked => &["--check-commits"],
            Attack::Periodic => &["--every", "1ms"],
            Attack::Manual => &["--commit", "manual", "--every", "1ms"],
            Attack::Durable => &["--durable", "visible"],
            Attack::Lagging | Attack::LaggingEverything => &["--durable", "200ms"],
            _ => &[],
        }
    }

    /// Whether the store is on a disk: `--durable` means nothing elsewhere.
    pub fn stores_on_disk(self) -> bool {
        matches!(self, Attack::Durable | Attack::Lagging | Attack::LaggingEverything)
    }

    /// What must be said to outlast after a blow that took the supervisor.
    pub fn revival(self) -> Option<&'static [&'static str]> {
        match self {
            Attack::Supervisor => Some(&["ps"]),
            Attack::Everything | Attack::LaggingEverything => Some(&["resume", NAME]),
            _ => None,
        }
    }

    /// Degradations the attack itself brings.
    pub fn degradations(self) -> &'static [Degradation] {
        match self {
            // Pipes that nobody holds any more have no name to be opened by.
            Attack::Everything | Attack::LaggingEverything => &[Degradation::DescriptorLost],
            _ => &[],
        }
    }

    /// The phase in which not to strike: without io_uring a kill inside an operation may lose or repeat it, and a test
    /// of all the rest must not be excused by that.
    fn avoided(self, setting: Setting) -> Option<usize> {
        (!setting.ring && self != Attack::Window).then_some(phase::OPERATION as usize)
    }

    /// What the hammer shall do to `case` with `blows` blows left; `round` counts the runs of this test.
    pub fn plan(self, case: &Case, setting: Setting, blows: u32, round: u32) -> Plan {
        let plan = Plan {
            targets: vec![Target::Program],
            signals: vec![Signal::KILL],
            pace: case.pace,
            aim: None,
            avoid: self.avoided(setting),
            blows,
        };
        match self {
            Attack::Kill | Attack::Checked | Attack::Periodic | Attack::Manual | Attack::Window => plan,
            Attack::Durable | Attack::Lagging => plan,
            Attack::Aimed => Plan { aim: Some(aimed_at(round)), blows: 6, ..plan },
            Attack::Fatal => Plan { signals: FATAL.to_vec(), ..plan },
            Attack::Anchor => Plan { targets: vec![Target::Anchor, Target::Program], pace: CALM, ..plan },
            Attack::Together => Plan { targets: vec![Target::ProgramAndAnchor], pace: CALM, ..plan },
            Attack::Supervisor => Plan { targets: vec![Target::Supervisor, Target::Program], pace: CALM, ..plan },
            Attack::Everything | Attack::LaggingEverything => {
                let pace = if case.pace.1 > CALM.1 { case.pace } else { CALM };
                Plan { targets: vec![Target::Everything], pace, ..plan }
            }
            Attack::Debugged => Plan { targets: vec![Target::Debugged, Target::Program], ..plan },
            Attack::Stopped => Plan { targets: vec![Target::Stopped, Target::Program], pace: CALM, ..plan },
            Attack::Named => Plan { targets: vec![Target::Named], ..plan },
            Attack::Calm => Plan { blows: 0, ..plan },
        }
    }

    /// Whether a test that has to land `blows` blows is done after `rounds` runs in which `landed` did.
    pub fn is_done(self, blows: u32, landed: u32, rounds: u32) -> bool {
        match self {
            // Some phases never come in some programs: every phase has its turns.
            Attack::Aimed => rounds >= AIMED_PHASES * (blows / 12).max(1),
            Attack::Calm => true,
            _ => landed >= blows,
        }
    }
}

/// All phases but "start".
const AIMED_PHASES: u32 = phase::NAMES.len() as u32 - 1;

/// Time for a new anchor, supervisor or process to come up.
const CALM: (Duration, Duration) = (Duration::from_millis(3), Duration::from_millis(25));

/// Phases in turn, beginning with the first after "start".
fn aimed_at(round: u32) -> usize {
    1 + (round % AIMED_PHASES) as usize
}
