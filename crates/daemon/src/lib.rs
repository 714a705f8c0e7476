//! Sees programs begin, and has those protected that policies designate.
//!
//! Executions are held at the opening of the file (fanotify). Of one that a policy may be about, a thread of its own traces the
//! process, lets it go on up to the stop at which it has become the new program and has not run an instruction of it, looks at what
//! it is now, and has it execute `outlast run` with the same arguments instead. It keeps its number, its parent and all
//! that it inherited; the program itself becomes its child. Every other execution is let go at once.
//!
//! Nothing here holds others up for long. The thread that lets executions go looks at no file outside /proc and lets each go after a
//! second whatever happens; the kernel lets all go when the daemon dies, and kills it when that thread has hung or was stopped for five.
//! An interpreter that a script is opened with is let go, too: the kernel holds a lock then that tracing needs. What users have written
//! is read with their rights, by a thread that may hang, and how many of their executions are seen to at once has a limit.

//!
//! Besides it watches the scheduler, in a thread of its own that depends on nothing of this, and with all of this switched off if it is wished so.

mod attaching;
mod command;
mod daemon;
mod deadline;
mod execs;
mod executing;
mod follow;
mod interposing;
mod marks;
mod network;
mod on_behalf;
mod process;
mod reader;
mod seats;
mod starvation;
mod tell;
mod teller;
mod units;
mod watching;

pub use attaching::DESIGNATE;
pub use daemon::{run, Executions, Request};
pub use execs::Error;
pub use follow::{leave_all, Running, DESIGNATED, FOLLOW, LEAVE};
pub use network::{Network, Shown};
pub use starvation::Watch;
pub use teller::Counts;
