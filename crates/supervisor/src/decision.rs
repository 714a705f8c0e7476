//! Who decides what a death means. The supervisor asks and acts; nothing here decides.

use crate::error::Error;
use crate::options::Options;
pub use outlast_interfaces::change::{Added, Change};
pub use outlast_interfaces::pmc::{Count, Wait};
pub use outlast_interfaces::proc::{
    Cause, Death, Decision, Hang, Hung, Leak, Resource, Respawn, Shortage, Standing, Starvation, Stays, Step, Storm,
    Stuck, Surroundings,
};
use outlast_interfaces::sect;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How a signal met the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Met {
    /// It was sent to the supervisor, which passed it on.
    PassedOn,
    /// It would have ended the program, which went back in place, at this moment of the monotonic clock in nanoseconds.
    WentBack(u64),
}

/// A process that runs the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    pub pid: libc::pid_t,
    /// Deaths before it.
    pub life: u64,
    /// The first of the engine's descriptors in it.
    pub engine_fds: i32,
}

/// The policies that protect one program.
pub trait Decides {
    /// The program has begun: from here on a policy may fail in any way.
    fn begin(&mut self);

    /// A death. None: nobody decides about it.
    fn died(&mut self, death: &Death) -> Option<Decision>;

    /// An older generation is to be gone on from; which, and in which way. None: from none of them.
    fn stuck(&mut self, stuck: &Stuck) -> Option<Step>;

    /// The kernel refuses a process for lack of memory or by a limit: when to ask again, if at all.
    fn refused(&mut self) -> Option<Duration>;

    /// It did not refuse it.
    fn born(&mut self);

    /// How often the program's threads are to be looked at, if at all.
    fn looks_every(&self) -> Option<Duration>;

    /// They were looked at, and the sections that have names. A thread that hangs: the process is to end for it.
    fn counted(&mut self, counts: &[Count], sections: &[sect::Thread]) -> Option<Hang>;

    /// What was to be told of when they were looked at last: a thread that does not get on, and would not after a recovery.
    fn starved(&mut self) -> Option<Starvation>;

    /// How long until the program is to be looked at for a policy, if it is at all.
    fn until_look(&self) -> Option<Duration>;

    /// The program is this process now, or none; it is looked at if it is time. What a person is to be told.
    /// `waits`: which threads wait for what another one has.
    fn look(&mut self, process: Option<Process>, waits: &dyn Fn() -> Vec<(i32, Wait)>) -> Vec<Leak>;

    /// A signal met the program.
    fn signalled(&mut self, signal: i32, meeting: Met);

    /// It goes on after a death, since this moment of a clock that does not go back. A storm, if that happens too often.
    fn recovered(&mut self, at: Duration) -> Option<Storm>;

    /// The program is another one, or in an older state.
    fn renewed(&mut self);

    /// A person wishes one of the policies otherwise: how the program, which was protected as `options` say, is protected from now on.
    ///
    /// # Errors
    /// That cannot be; why, and all is as before.
    fn change(&mut self, change: &Change, options: &Options) -> Result<Changed, String>;

    /// It is to be protected as these options say after all.
    ///
    /// # Errors
    /// Some of the policies cannot; why.
    fn restore(&mut self, options: &Options) -> Result<(), String>;

    /// The same policies, for another process of the program, under a name of its own.
    ///
    /// # Errors
    /// One of them cannot be had once more; why.
    fn for_another(&self, name: &str, options: &mut Options) -> Result<Box<dyn Decides>, String>;

    /// What is loaded.
    fn parts(&self) -> Parts;

    /// Policies that failed since this was asked last, and how, in words.
    fn failures(&mut self) -> Vec<String>;

    /// What policies had to say since this was asked last, in words.
    fn said(&mut self) -> Vec<String>;
}

/// What became of a wish.
pub struct Changed {
    pub options: Options,
    /// In words; none if nothing is otherwise.
    pub what: String,
}

/// What protects a program: modules, and the pins that these use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parts {
    pub modules: Vec<String>,
    pub pins: Vec<String>,
}

/// Makes the policies for the program of this name, which may set how the engine is to protect it.
pub type Load<'a> = &'a dyn Fn(&str, &mut Options) -> Result<Box<dyn Decides>, Error>;
