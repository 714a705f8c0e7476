//! Who decides what a death means. The supervisor asks and acts; nothing here decides.

use crate::error::Error;
use crate::options::Options;
pub use outlast_interfaces::pmc::Count;
pub use outlast_interfaces::proc::{
    Cause, Death, Decision, Hang, Hung, Respawn, Shortage, Standing, Stays, Step, Storm, Stuck, Surroundings,
};
use std::time::Duration;

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

    /// They were looked at. A thread that hangs: the process is to end for it.
    fn counted(&mut self, counts: &[Count]) -> Option<Hang>;

    /// It goes on after a death, since this moment of a clock that does not go back. A storm, if that happens too often.
    fn recovered(&mut self, at: Duration) -> Option<Storm>;

    /// The program is another one, or in an older state.
    fn renewed(&mut self);

    /// Policies that failed since this was asked last, and how, in words.
    fn failures(&mut self) -> Vec<String>;

    /// What policies had to say since this was asked last, in words.
    fn said(&mut self) -> Vec<String>;
}

/// Makes the policies for the program of this name, which may set how the engine is to protect it.
pub type Load<'a> = &'a dyn Fn(&str, &mut Options) -> Result<Box<dyn Decides>, Error>;
