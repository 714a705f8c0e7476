//! The parent of a test's process: reaps what the test's tree orphans, and ends what outlives the test.

use std::process::{Command, ExitCode};
use std::thread;

use rustix::process::{kill_process, wait, Pid, Signal, WaitOptions};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::failure::{Outcome, Tried};
use crate::tree;

/// Runs `test` and keeps its tree; returns its exit status.
pub fn keep(test: &mut Command) -> Outcome<ExitCode> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).tried("become a subreaper")?;
    // If the runner dies the test shall not go on alone.
    rustix::process::set_parent_process_death_signal(Some(Signal::TERM)).tried("ask for the parent's death signal")?;
    let signals = Signals::new([SIGHUP, SIGINT, SIGTERM]).tried("catch signals")?;
    let child = test.spawn().tried("start the test's process")?;
    let test = Pid::from_child(&child);
    forward(signals, test);
    let code = loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == test => break status.exit_status().unwrap_or(101),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error).tried("wait for the test's process"),
        }
    };
    tree::sweep();
    Ok(ExitCode::from(code as u8))
}

/// An interrupted test ends its tree itself, and says how far it got.
fn forward(mut signals: Signals, test: Pid) {
    thread::spawn(move || {
        for _ in signals.forever() {
            // The test is this process's child and not yet reaped, or this process ends within the moment.
            let _ = kill_process(test, Signal::TERM);
        }
    });
}
