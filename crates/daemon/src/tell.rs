//! What the daemon tells, on standard error and, with fields, to the journal. Where these are the same it is told once.

use outlast_supervisor::journal::{self, Fields};
use outlast_supervisor::say::say;
use rustix::fs::fstat;
use std::fmt::Arguments;

/// A kind of event: its name, how grave it is (syslog(3)), and the number by which others search for it.
pub struct Event(&'static str, u8, &'static str);

impl Event {
    pub fn name(&self) -> &'static str {
        self.0
    }
}

pub const PROTECTED: Event = Event("protected", 6, "4095d8a5b2ab5564d2e730698aa00feb");
/// A policy wants it protected, and it is not.
pub const UNPROTECTED: Event = Event("unprotected", 4, "72882787390d4d9998c5560fdcc947af");
pub const REFUSED: Event = Event("policy-refused", 3, "7df85f835377a4512629bdfd5f80dc74");
/// Threads wait for a processor that does not switch.
pub const PROCESSOR_STARVED: Event = Event("processor-starved", 2, "5918ba9a8897921458152117759a77af");
/// A thread of a protected program does not get a processor.
pub const THREAD_STARVED: Event = Event("thread-starved", 3, "f44989fea0b48118782282cca84a1dbd");

/// Another node has been silent for too long.
pub const NODE_VANISHED: Event = Event("node-vanished", 3, "df20ae6e63b34c3698c47a3a57219975");
/// And is spoken to.
pub const NODE_RETURNED: Event = Event("node-returned", 5, "43f942f9534f443bbdd33f84a5fe5fb5");
/// The file that says which other nodes there are, or what it says, cannot be used.
pub const NODES_REFUSED: Event = Event("nodes-refused", 3, "94a1e089630a413fb0806a4aee12b47d");

/// `others`: fields of this event alone.
pub fn tell(event: &Event, others: Fields, line: Arguments<'_>) {
    let Event(name, priority, id) = event;
    let mut fields: Fields = vec![
        ("MESSAGE", line.to_string()),
        ("MESSAGE_ID", (*id).into()),
        ("PRIORITY", priority.to_string()),
        ("SYSLOG_IDENTIFIER", "outlast".into()),
        ("OUTLAST_EVENT", (*name).into()),
    ];
    fields.extend(others);
    let is_taken = journal::send(&journal::socket(), &fields);
    if !(is_taken && is_the_journal()) {
        say(line);
    }
}

/// Does standard error go there already? So says systemd.exec(5).
fn is_the_journal() -> bool {
    let stream = std::env::var("JOURNAL_STREAM").unwrap_or_default();
    let Ok(stat) = fstat(rustix::stdio::stderr()) else { return false };
    stream == format!("{}:{}", stat.st_dev, stat.st_ino)
}
