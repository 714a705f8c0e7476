//! Threads of a client that contend for a lock, watched from outside: their own output says who held the lock when.

use std::process::Command;
use std::time::Duration;

use outlast_glue_rt::Handle;

use crate::watched::watch;

pub const THREADS: u32 = 12;

/// What was seen of a run of contenders.
#[derive(Debug, PartialEq, Eq)]
pub enum Seen {
    /// So many turns, one holder at a time.
    Right(usize),
    TwoHolders,
    Failed,
    /// It made no progress and was ended.
    Stuck,
}

/// Has the client contend while its component is killed; and how often that was. `rest`: what follows its numbers.
pub fn contend(
    handle: &Handle,
    mut command: Command,
    rounds: u32,
    rest: Option<&str>,
    patience: Duration,
) -> (Seen, u32) {
    command.arg(THREADS.to_string()).arg(rounds.to_string()).args(rest);
    let ended = watch(handle, &["lock"], command, patience);
    let seen = match ended.success {
        _ if !alternates(&ended.output) => Seen::TwoHolders,
        None => Seen::Stuck,
        Some(true) => Seen::Right(ended.output.lines().count() / 2),
        Some(false) => Seen::Failed,
    };
    (seen, ended.kills)
}

/// Every `+N` is followed by `-N` before the next `+`.
fn alternates(text: &str) -> bool {
    let mut holder = None;
    text.lines().all(|line| match (line.split_at(1), holder) {
        (("+", thread), None) => {
            holder = Some(thread);
            true
        }
        (("-", thread), Some(holding)) if holding == thread => {
            holder = None;
            true
        }
        _ => false,
    })
}
