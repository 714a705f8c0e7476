//! Ends a test that takes too long, or that somebody interrupts, and everything it started.

use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::pipe;

use crate::diagnosis;
use crate::failure::{Outcome, Tried};
use crate::tree;

/// Exit status of a test that its watchdog ended.
pub const TIMED_OUT: i32 = 3;

/// What such a test says first.
pub const TOO_LONG: &str = "took too long";

/// Watches this process from now on.
pub fn watch(limit: Duration) -> Outcome<()> {
    let (mut reading, writing) = UnixStream::pair().tried("make a socket pair")?;
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        pipe::register(signal, writing.try_clone().tried("duplicate a socket")?).tried("catch a signal")?;
    }
    thread::spawn(move || {
        let _keep = writing;
        let limit = Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: limit.subsec_nanos().into() };
        let polled = &mut [PollFd::from_borrowed_fd(reading.as_fd(), PollFlags::IN)];
        // Ok(0) is the limit; a signal that ends the wait itself is one of those above.
        let interrupted = poll(polled, Some(&limit)) != Ok(0);
        let why = if interrupted { "interrupted" } else { TOO_LONG };
        // The text is taken first: it tells who is alive.
        let text = diagnosis::text_of_hang();
        tree::sweep();
        eprintln!("{why}\n{text}");
        if interrupted {
            let _ = reading.read(&mut [0]);
        }
        std::process::exit(TIMED_OUT);
    });
    Ok(())
}
