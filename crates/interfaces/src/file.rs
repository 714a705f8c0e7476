//! The pin `file`: the program's table of open files (RMK, Table 3). Looked at from outside (`/proc/PID/fd`); reads and writes are not told of, as that
//! would put somebody on their path. Without the descriptors of the engine, which the program does not know of.

use crate::named;
use crate::watch::Look;
use outlast_core::Interface;
use serde::{Deserialize, Serialize};

pub const NAME: &str = "file";

/// Operation: the table is looked at at intervals. Argument: [`crate::watch::Watch`].
pub const WATCH: &str = "watch";
/// Operation: what is in the table. Argument: [`List`], result: `Vec<Descriptor>`, the lowest first.
pub const LIST: &str = "list";

/// Event: the table was looked at. Payload: [`Counted`].
pub const COUNTED: &str = "counted";

pub const INTERFACE: Interface = Interface {
    name: NAME,
    what: "tables of open files",
    operations: &[named(WATCH, "a program's table is looked at at intervals"), named(LIST, "what is in the table")],
    events: &[named(COUNTED, "a program's table was looked at")],
};

/// So many are listed at most.
pub const MOST: u32 = 1024;

/// A part of the table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct List {
    pub program: String,
    /// None below this number.
    pub from: i32,
    /// No more than so many, and than [`MOST`].
    pub most: u32,
}

/// What is behind a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// Something that has a path: files, folders, devices.
    File,
    Pipe,
    Socket,
    /// What the kernel made without a name: epoll, eventfd, timerfd…
    Other,
}

/// An open file of the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Descriptor {
    pub number: i32,
    pub kind: Kind,
    /// As the kernel shows it (`pipe:[77]`); what is not UTF-8 in it is replaced.
    pub path: String,
    /// As open(2) has them.
    pub flags: u32,
    /// Where it is read or written next, in bytes.
    pub offset: u64,
}

/// How much is in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    pub look: Look,
    pub open: u32,
    /// Of the first [`COUNTED_BY_KIND`].
    pub files: u32,
    pub pipes: u32,
    pub sockets: u32,
    pub others: u32,
    /// So many may be open (the soft `RLIMIT_NOFILE`); the engine has some numbers of these.
    pub limit: u64,
}

/// So many are told apart; of those beyond only the number is known.
pub const COUNTED_BY_KIND: usize = 4096;
