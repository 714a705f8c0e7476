//! Ways to talk to a program, the same for an unharmed and a harmed run.

pub mod client;
pub mod pipe;
pub mod redirect;
pub mod screen;
pub mod socket;
pub mod stream;
pub mod terminal;

use std::collections::BTreeMap;
use std::process::{Child, Command};

pub use client::Client;
pub use stream::{drain_both, Input};
pub use terminal::{open_terminal, Script, Step};

use crate::diagnosis;
use crate::failure::{Outcome, Tried};
use crate::room::Room;
use crate::tree;
use crate::view::{Status, View};

/// Starts a program, talks to it until it ends, and tells what was seen.
pub type Talk = dyn Fn(Command, &Room, u64) -> Outcome<Seen>;

/// How a program is talked to.
pub enum Drive {
    /// Standard input and output are pipes.
    Pipes(Input),
    /// Standard input and output are one end of a Unix stream socket pair.
    Socket(Input),
    /// Standard input is a file with these contents, standard output the file `stdout` in the program's directory.
    Files(Vec<u8>),
    /// Standard input, output and error are a terminal of its own.
    Terminal(Script),
    /// Clients connect to it over TCP; its output is taken as well.
    Clients(Client),
    /// A way of the case's own: gets the command, the room and a seed.
    Own(Box<Talk>),
}

/// What was seen, without the files.
#[derive(Default)]
pub struct Seen {
    pub streams: BTreeMap<String, Vec<u8>>,
    pub screens: BTreeMap<String, String>,
    pub status: Option<Status>,
}

impl Drive {
    /// Starts `command` and talks to it until it ends. `unharmed` is what an undisturbed run showed, if this is another.
    pub fn perform(&self, command: Command, room: &Room, seed: u64, unharmed: Option<&View>) -> Outcome<Seen> {
        match self {
            Drive::Pipes(input) => pipe::perform(command, input, seed),
            Drive::Socket(input) => socket::perform(command, input, seed),
            Drive::Files(input) => redirect::perform(command, room, input),
            Drive::Terminal(script) => terminal::perform(command, room, script, unharmed),
            Drive::Clients(client) => client::perform(command, client, seed),
            Drive::Own(talk) => talk(command, room, seed),
        }
    }
}

/// Starts a program; its pid is noted for the diagnosis.
pub fn spawn(mut command: Command) -> Outcome<Child> {
    let name = format!("start {}", command.get_program().to_string_lossy());
    let child = command.spawn().tried(name)?;
    diagnosis::note("started", format!("pid {}", child.id()));
    Ok(child)
}

/// Waits for its end.
pub fn status_of(mut child: Child) -> Outcome<Status> {
    let status: Status = child.wait().tried("wait for the program")?.into();
    diagnosis::note("status", format!("{status:?}"));
    Ok(status)
}

/// After a failure: ends the program, so that the threads that read from it end too.
pub fn or_end_all<T>(result: Outcome<T>) -> Outcome<T> {
    if let Err(failure) = &result {
        diagnosis::note("failure", failure.to_string());
        tree::sweep();
    }
    result
}
