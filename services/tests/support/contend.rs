//! Threads of a client that contend for a lock, watched from outside: their own output says who held the lock when.

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use outlast_glue_rt::Handle;

use crate::support::{while_killed, Chance};

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

/// Has the client contend while its component is killed; and how often that was. `client`: its program and, at the end, what
/// follows the numbers.
pub fn contend(
    handle: &Handle,
    mut command: Command,
    rounds: u32,
    rest: Option<&str>,
    patience: Duration,
) -> (Seen, u32) {
    command.arg(THREADS.to_string()).arg(rounds.to_string()).args(rest);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    handle.grant().expect("a channel").pass(&mut command, "lock");
    let mut client = command.spawn().expect("the contenders");
    let mut output = client.stdout.take().expect("piped");
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        output.read_to_string(&mut text).map(|_| text)
    });
    let mut chance = Chance::new();
    let ((status, stuck), kills) = while_killed(handle, &mut chance, || {
        let begun = Instant::now();
        loop {
            if let Some(status) = client.try_wait().expect("a child") {
                break (status, false);
            }
            if begun.elapsed() > patience {
                client.kill().expect("a child");
                break (client.wait().expect("a child"), true);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    let text = reader.join().expect("the reader").expect("text");
    if !alternates(&text) {
        return (Seen::TwoHolders, kills);
    }
    let mut errors = String::new();
    client.stderr.take().expect("piped").read_to_string(&mut errors).expect("text");
    print!("{errors}");
    let seen = match (stuck, status.success()) {
        (true, _) => Seen::Stuck,
        (_, true) => Seen::Right(text.lines().count() / 2),
        _ => Seen::Failed,
    };
    (seen, kills)
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
