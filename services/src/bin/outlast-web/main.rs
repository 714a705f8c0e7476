//! A web server on the six components: scheduler, memory manager, RAM file system, locks, events and periodic timers.
//!
//! ```text
//!   clients ── sockets ── front: poller, workers, clock
//!                           │ mailbox and buffers: pages of the memory manager; an event each way
//!                         content process: a partner for each worker ── RAM file system
//! ```
//!
//! The front has the network and no files, the content process has files and no network. A connection's contents come in pages
//! that the content process gets for it, and that the front may only read. Connections that wait for a worker are in a table
//! under a lock of the lock component; workers are blocked and woken through the scheduler; the clock is a periodic timer.

mod clock;
mod connection;
mod content;
mod failure;
mod front;
mod guarded;
mod http;
mod load;
mod log;
mod mailbox;
mod options;
mod partner;
mod poller;
mod start;
mod stubs;
mod worker;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use nix::sys::signal::{SigSet, Signal};

use failure::Failure;
use options::Options;

fn main() -> ExitCode {
    let options = Options::parse();
    // In all threads, which come after this: they are waited for. The content process is ended by its front.
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGINT);
    signals.add(Signal::SIGTERM);
    let blocked = signals.thread_block();
    let result = match (options.content, blocked) {
        (_, Err(error)) => Err(Failure::Content(error.into())),
        (Some(front), Ok(())) => content::run(options.stubs, &options.root, front, options.workers),
        (None, Ok(())) => serve(&options, &signals),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Said) => ExitCode::FAILURE,
        Err(failure) => {
            eprintln!("outlast-web: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn serve(options: &Options, signals: &SigSet) -> Result<(), Failure> {
    more_descriptors();
    let running = start::start(options)?;
    let (address, files, bytes) = (running.address, running.files, running.bytes);
    let mut output = std::io::stdout();
    // Who does not read it may be gone.
    let _ = writeln!(output, "outlast-web: http://{address}/ has {files} files, {bytes} bytes")
        .and_then(|()| output.flush());
    while signals.wait().is_err() {}
    failure::ending();
    running.end()
}

/// A socket for each connection, and for each buffer a descriptor in whoever knows it.
fn more_descriptors() {
    use rustix::process::{getrlimit, setrlimit, Resource, Rlimit};
    let limit = getrlimit(Resource::Nofile);
    // Where it is refused, connections are that are beyond it.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}
