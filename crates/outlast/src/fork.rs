//! `outlast fork`: a copy of a program goes on by itself.

use crate::{protection, state};
use clap::{Args, ValueEnum};
use outlast_supervisor::generations::{choose, list, Wanted};
use outlast_supervisor::{departure, fork, Error};
use std::path::PathBuf;

/// Run a copy of a program in this terminal
///
/// The program itself runs on. The copy has a name, a store and a process id of its own; the files that it has open are the same
/// files; its connections to others are closed unless told otherwise, and standard input, output and error are those of this command.
#[derive(Args)]
pub struct Fork {
    /// The program
    name: String,
    /// From which state: a number that `outlast generations` lists, or an age such as 30s  [default: the last commit]
    #[arg(long, value_name = "AGE|GENERATION")]
    generation: Option<Wanted>,
    /// What becomes of sockets and pipes that the program has open
    #[arg(long, value_enum, default_value = "closed")]
    connections: Connections,
    /// Name of the copy  [default: the program's, with a number]
    #[arg(long = "name", value_name = "NEW")]
    new: Option<String>,
    /// Where the key file of its generations is now  [default: where `run --encrypt` found it]
    #[arg(long, value_name = "KEYFILE")]
    key: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Connections {
    /// The copy finds them closed by their other end
    Closed,
    /// The copy has them open as well: what arrives gets who reads it first
    Given,
}

impl Fork {
    pub fn execute(self) -> Result<i32, Error> {
        let folder = state::open()?.program(&self.name)?;
        let number = match self.generation {
            Some(wanted) => Some(choose(&self.name, &list(&folder)?, wanted)?),
            None => None,
        };
        let (name, shares) = (self.new.as_deref(), self.connections == Connections::Given);
        departure::depart(fork::fork(&folder, number, name, shares, self.key.as_deref(), &protection::go_on(&[]))?)
    }
}
