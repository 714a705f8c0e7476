//! A thread that is stopped by us.

use super::refusal::Refusal;
use crate::processes;
use crate::trace::{self, Fault};
use libc::pid_t;
use std::time::{Duration, Instant};

/// How long a thread may take to stop. One that the kernel holds cannot.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long it may be busy with signals.
const SIGNALS_PATIENCE: Duration = Duration::from_secs(2);

const PTRACE_EVENT_STOP: i32 = 128;

/// Dropped, it goes on.
pub struct Stopped {
    tid: pid_t,
    holds: bool,
}

impl Stopped {
    /// One that was found stopped.
    pub fn new(tid: pid_t) -> Self {
        Self { tid, holds: true }
    }

    pub fn tid(&self) -> pid_t {
        self.tid
    }

    /// It is somebody else's to let go.
    pub fn forget(mut self) {
        self.holds = false;
    }

    /// Waits until no signal awaits the thread that the kernel would have it take before anything else. False: it had to run for that.
    pub fn await_calm(&mut self) -> Result<bool, Refusal> {
        let failed = |e| Refusal::Kernel("let it take its signals", e);
        let asked = Instant::now();
        let mut was_calm = true;
        loop {
            let mask = trace::signal_mask(self.tid).map_err(failed)?;
            if processes::pending_signals_of_thread(self.tid) & !mask == 0 {
                return Ok(was_calm);
            }
            if asked.elapsed() > SIGNALS_PATIENCE {
                return Err(Refusal::Busy);
            }
            was_calm = false;
            trace::resume(self.tid, 0).and_then(|()| trace::interrupt(self.tid)).map_err(failed)?;
            self.holds = false;
            await_stop(self.tid)?;
            self.holds = true;
        }
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        if self.holds {
            // One that was killed needs no letting go.
            let _ = trace::detach(self.tid, 0);
        }
    }
}

/// Waits for the stop that was asked for; signals go where they would have gone.
pub fn await_stop(tid: pid_t) -> Result<(), Refusal> {
    let asked = Instant::now();
    loop {
        let left = PATIENCE.saturating_sub(asked.elapsed());
        let stop = match trace::wait_stop_for(tid, left) {
            Ok(Some(stop)) => stop,
            Ok(None) => return Err(Refusal::DoesNotStop),
            Err(Fault::Gone(_)) => return Err(Refusal::Gone),
            Err(Fault::Kernel(what, e)) => return Err(Refusal::Kernel(what, e)),
        };
        let gone_on = match (stop.event, stop.signal) {
            (PTRACE_EVENT_STOP, libc::SIGTRAP) => return Ok(()),
            (PTRACE_EVENT_STOP, _) => {
                let _ = trace::detach(tid, 0);
                return Err(Refusal::Stopped);
            }
            (_, signal) => trace::resume(tid, signal),
        };
        gone_on.map_err(|e| Refusal::Kernel("pass a signal on to it", e))?;
    }
}
