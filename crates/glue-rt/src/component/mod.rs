//! The component's side: what a service is, and the processes around it.

mod call;
mod change;
mod epoch;
mod instance;
mod kin;
mod monitor;
mod succession;
mod template;
mod watch;

pub use call::{Call, Stop};
pub use template::run;

/// An operation of an interface, as far as a malformed request is known by it.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    pub name: &'static str,
    /// Words that come with the call.
    pub words: u32,
    /// Bytes may come with it, too.
    pub bytes: bool,
    /// An open file may.
    pub file: bool,
    /// The word with the descriptor that it closes.
    pub closes: Option<usize>,
}

/// Moments of a call at which a failure is not the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// Nothing of it has happened.
    Begun,
    /// In this process alone.
    Done,
    /// Its changes outlive this process, but it has no reply: they are to be undone.
    Committed,
    /// Its reply is there: it has happened.
    Published,
}

impl Point {
    pub const ALL: [Self; 4] = [Self::Begun, Self::Done, Self::Committed, Self::Published];
}

/// A service behind its generated stub. It runs in the monitor, one call at a time.
pub trait Component: Send + 'static {
    /// Asked once; the index is the operation's number.
    fn operations(&self) -> &'static [Operation];

    /// Descriptors keep their ids through micro-reboots, and every client may use them.
    fn is_global(&self) -> bool;

    /// Called once in each instance before it serves, when its process may have threads: here a service opens its channels to other
    /// components. One that cannot begin is micro-rebooted, in the end given up.
    fn born(&mut self) -> std::io::Result<()> {
        Ok(())
    }

    /// Serves a call, or says why not; then the service is as if the call had not been made, and it is dispatched once more.
    fn dispatch(&mut self, call: &mut Call<'_>) -> Result<(), Stop>;

    /// Called at each point of each call, for a component that is to fail there.
    fn reached(&self, _point: Point, _operation: u32) {}
}
