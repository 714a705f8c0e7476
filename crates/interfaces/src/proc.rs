//! The pin `proc`: what becomes of a program's process. Not in RMK's Table 3, where recovery is part of the modules.
//!
//! What is asked is decided by the first command about it that a module issues while it is told of [`DIED`], [`STUCK`] or
//! [`REFUSED`]; later ones are refused.

use crate::named;
use crate::pmc::Wait;
use crate::sect;
use outlast_core::Interface;
use serde::{Deserialize, Serialize};
use std::time::Duration;

pub const NAME: &str = "proc";

/// Operation: it was the program's own end. Argument: [`End`].
pub const END: &str = "end";
/// Operation: a process goes on from the last commit. Argument: [`Respawn`].
pub const RESPAWN: &str = "respawn";
/// Operation: a program that has not begun is started anew. Argument: `i32`, the signal that killed it.
pub const START_AGAIN: &str = "start_again";
/// Operation: the last commit is not to be gone on from, but an older generation; [`STUCK`] asks from which. Argument: [`Cause`].
pub const GO_BACK: &str = "go_back";
/// Operation: a process goes on from this generation. Argument: [`Step`].
pub const GO_BACK_TO: &str = "go_back_to";
/// Operation: nothing more is tried. Argument: [`Cause`].
pub const GIVE_UP: &str = "give_up";
/// Operation: a thread hangs, and its process is to end for it. Argument: [`Hang`]. While the module is told of counts (`pmc`).
pub const FLAG: &str = "flag";
/// Operation: a thread does not get on for a reason that a new process does not end, and a person is to be told. Argument: [`Starvation`].
/// While the module is told of counts (`pmc`).
pub const STARVES: &str = "starves";
/// Operation: the program is recovered too often, and a person is to be told. Argument: [`Storm`]. While the module is told of [`RECOVERED`].
pub const ALERT: &str = "alert";
/// Operation: the program uses up something, and a person is to be told. Argument: [`Leak`]. While the module is told of what a look at
/// the program has shown.
pub const WARN: &str = "warn";
/// Operation: the kernel is asked for a process again, later. Argument: `Duration`.
pub const ASK_AGAIN: &str = "ask_again";

/// Event: the program's process ended. Payload: [`Death`].
pub const DIED: &str = "died";
/// Event: an older generation is to be chosen, also because the one that was chosen turned out to be damaged. Payload: [`Stuck`].
pub const STUCK: &str = "stuck";
/// Event: the kernel refuses the process that was to go on, for lack of memory or by a limit. No payload. Unless a module asks
/// again, a fresh one is made from the store.
pub const REFUSED: &str = "refused";
/// Event: there is such a process. No payload.
pub const BORN: &str = "born";
/// Event: the program goes on after a death. Payload: `Duration`, the moment on a clock that does not go back.
pub const RECOVERED: &str = "recovered";
/// Event: the program is another one, or in an older state: what was counted against it counts no more. No payload.
pub const RENEWED: &str = "renewed";

pub const INTERFACE: Interface = Interface {
    name: NAME,
    what: "what becomes of a program's process",
    operations: &[
        named(END, "it was the program's own end"),
        named(RESPAWN, "a process goes on from the last commit"),
        named(START_AGAIN, "a program that has not begun is started anew"),
        named(GO_BACK, "an older generation is to be gone on from"),
        named(GO_BACK_TO, "a process goes on from this generation"),
        named(GIVE_UP, "nothing more is tried"),
        named(FLAG, "a thread hangs, and its process is to end for it"),
        named(STARVES, "a thread does not get on, and a person is to be told"),
        named(ALERT, "the program is recovered too often, and a person is to be told"),
        named(WARN, "the program uses up something, and a person is to be told"),
        named(ASK_AGAIN, "the kernel is asked for a process again, later"),
    ],
    events: &[
        named(DIED, "the program's process ended"),
        named(STUCK, "an older generation is to be chosen"),
        named(REFUSED, "the kernel refuses a process"),
        named(BORN, "there is a process"),
        named(RECOVERED, "the program goes on after a death"),
        named(RENEWED, "the program is another one, or in an older state"),
    ],
};

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// It exited with this status, 0..=255.
    Exited(i32),
    /// This signal killed it.
    Killed(i32),
}

/// What the program was about when its process ended, as far as protection goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Standing {
    /// It was protected, or about to be.
    Protected,
    /// It had called exit, with this status.
    Exiting(i32),
    /// It ran without protection.
    Suspended,
    /// It met the same fatal signal too often, and the engine let it die.
    GivenUp,
}

/// A death.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Death {
    pub end: End,
    /// The signal that killed it is the one by which the supervisor calls the engine, and found none: nobody meant its end.
    pub by_call: bool,
    /// The engine met an error of its own and ended the process.
    pub by_engine: bool,
    pub standing: Standing,
    /// Whether there is a commit to go on from.
    pub has_commit: bool,
    /// Sequence number of the last one.
    pub seq: u64,
    /// Somebody asked for the program to be stopped.
    pub stopping: bool,
    /// Restores that came to their end so far.
    pub restored: u32,
    /// The store cannot be read: one of `outlast_image::control::unreadable`.
    pub unreadable: Option<u32>,
    /// It hung, and was ended for that.
    pub hung: Option<Hung>,
    /// The OOM killer killed it.
    pub shortage: Option<Shortage>,
    /// Whether older generations are kept.
    pub has_older: bool,
}

impl Death {
    /// Of a protected program that can go on from its commit 7, nothing else being so: where tests and measurements begin.
    pub const fn plain(end: End) -> Self {
        Self {
            end,
            by_call: false,
            by_engine: false,
            standing: Standing::Protected,
            has_commit: true,
            seq: 7,
            stopping: false,
            restored: 0,
            unreadable: None,
            hung: None,
            shortage: None,
            has_older: false,
        }
    }
}

/// A thread that does not leave its code section.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hang {
    /// What the kernel calls the thread.
    pub thread: i32,
    /// Where the section begins: see `pmc::Count`.
    pub section: u64,
    /// Whether it was seen elsewhere since its process began or was recovered.
    pub has_moved: bool,
    pub why: Stays,
}

/// Why a thread is taken to stay where it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stays {
    /// It has computed for longer than it ever did there.
    Computes {
        /// Processor time since it was first seen there.
        count: Duration,
        /// The section's check value: it should have been out by then.
        check: Duration,
    },
    /// The same of a section that the program or a person names.
    Lingers { section: sect::Section, count: Duration, check: Duration },
    /// It waits for what another thread has, which waits for the next, and the last one for the first: each with its number.
    Deadlock(Vec<(i32, Wait)>),
    /// In the module's own words, where it looks at something else.
    Told(String),
}

/// A thread that is in a code section for long, and does not compute there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Starvation {
    /// What the kernel calls the thread.
    pub thread: i32,
    /// Where the section begins: see `pmc::Count`.
    pub section: u64,
    /// It could run, and gets no processor; otherwise the kernel has it wait for what cannot be interrupted.
    pub could_run: bool,
    /// For at least so long.
    pub waited: Duration,
}

/// More recoveries than there should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Storm {
    pub recoveries: u32,
    /// In which time at most.
    pub within: Duration,
}

/// What a program has of something grows, and does not shrink again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leak {
    pub of: Resource,
    /// What it never fell below in the first part of the window.
    pub from: u64,
    /// What it did not fall below in the last one.
    pub to: u64,
    pub within: Duration,
    /// More it may not have.
    pub limit: u64,
}

/// What a program may use up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Resource {
    Descriptors,
    /// In bytes: anonymous memory, also what of it is swapped out.
    Memory,
}

/// What is told of it when the process has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hung {
    pub section: u64,
    pub has_moved: bool,
}

/// Lack of memory: what the program's control groups allow, in bytes, if they limit it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shortage {
    pub limit: Option<u64>,
}

/// How to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Respawn {
    /// What the process died of.
    pub signal: i32,
    /// How long to wait first, while everything else goes on.
    pub after: Duration,
}

/// Why nothing ordinary helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cause {
    /// It dies of this signal again and again.
    Signal(i32),
    /// Its store cannot be read, for this reason (see [`Death::unreadable`]).
    Unreadable(u32),
}

/// What there is to go back to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stuck {
    pub cause: Cause,
    /// Address of the instruction that failed last; 0 if that is not known.
    pub instruction: u64,
    /// The generations that are kept, ascending.
    pub kept: Vec<u64>,
}

/// Where to go back to, and in which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    pub generation: u64,
    pub surroundings: Surroundings,
    /// What it read since is given to it again, as far as that is kept, and what it sends like then is not sent again.
    #[serde(default)]
    pub again: bool,
}

/// What is different from the last time, so that what depends on it may come out otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Surroundings {
    Same,
    /// There is room between new mappings.
    Room,
    /// And calls are delayed.
    RoomAndDelays,
}

/// What is to be done about a death.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    End(End),
    Respawn(Respawn),
    StartAgain(i32),
    GoBack(Cause),
    GoBackTo(Step),
    GiveUp(Cause),
    AskAgain(Duration),
}
