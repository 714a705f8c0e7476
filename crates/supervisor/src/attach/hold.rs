//! Takes hold of a running process: its thread is stopped where nothing awaits it, or it is let go again.

use super::refusal::Refusal;
use super::restart::{abort_sequence, resumption, sequence, Resumption};
use crate::processes;
use crate::trace::{self, Fault};
use libc::{pid_t, user_regs_struct};
use rustix::io::Errno;
use std::time::{Duration, Instant};

/// How long a process may take to stop. One that the kernel holds cannot.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long it may be busy with signals.
const SIGNALS_PATIENCE: Duration = Duration::from_secs(2);

const PTRACE_EVENT_STOP: i32 = 128;

/// A process that is stopped by us. Dropped, it goes on as if nothing had been.
pub struct Hold {
    pid: pid_t,
    /// Registers and mask of blocked signals, for the kernel to go on with.
    pub stop: (user_regs_struct, u64),
    /// Where it goes on if it was elsewhere meanwhile.
    pub resumption: Resumption,
    /// Its restartable sequence.
    pub sequence: [u64; 3],
    holds: bool,
}

impl Hold {
    /// Stops a process of one thread.
    pub fn take(pid: pid_t) -> Result<Self, Refusal> {
        trace::seize_gently(pid).map_err(|e| match e {
            Errno::SRCH => Refusal::Gone,
            Errno::PERM => Refusal::forbidden(),
            e => Refusal::Kernel("trace it", e),
        })?;
        let none = |e| Refusal::Kernel("read its registers", e);
        trace::interrupt(pid).map_err(|e| Refusal::Kernel("stop it", e))?;
        await_stop(pid)?;
        // From here on it is let go by whoever drops it.
        // SAFETY: the structure holds integers only.
        let regs = unsafe { std::mem::zeroed() };
        let mut hold = Self {
            pid,
            stop: (regs, 0),
            resumption: Resumption { regs, waits_in: None },
            sequence: [0; 3],
            holds: true,
        };
        hold.await_calm()?;
        let regs = trace::registers(pid).map_err(none)?;
        hold.stop = (regs, trace::signal_mask(pid).map_err(none)?);
        hold.sequence = match sequence(pid) {
            Ok(sequence) => sequence,
            // A kernel that has none, or that does not tell: then a thread that has one cannot be told from others.
            Err(Errno::IO) if !kernel_has_sequences() => [0; 3],
            Err(e) => return Err(Refusal::Kernel("ask for its restartable sequence", e)),
        };
        hold.resumption = resumption(&regs);
        let going_on = &mut hold.resumption.regs;
        abort_sequence(pid, hold.sequence[0], going_on).map_err(|e| Refusal::Kernel("read its memory", e))?;
        Ok(hold)
    }

    /// It is somebody else's to let go.
    pub fn hand_over(mut self) {
        self.holds = false;
    }

    /// Waits until no signal awaits the thread that the kernel would have it take before anything else.
    fn await_calm(&mut self) -> Result<(), Refusal> {
        let failed = |e| Refusal::Kernel("let it take its signals", e);
        let asked = Instant::now();
        loop {
            let mask = trace::signal_mask(self.pid).map_err(failed)?;
            if processes::pending_signals(self.pid) & !mask == 0 {
                return Ok(());
            }
            if asked.elapsed() > SIGNALS_PATIENCE {
                return Err(Refusal::Busy);
            }
            trace::resume(self.pid, 0).and_then(|()| trace::interrupt(self.pid)).map_err(failed)?;
            self.holds = false;
            await_stop(self.pid)?;
            self.holds = true;
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if self.holds {
            // One that was killed needs no letting go.
            let _ = trace::detach(self.pid, 0);
        }
    }
}

/// Waits for the stop that was asked for; signals go where they would have gone.
fn await_stop(pid: pid_t) -> Result<(), Refusal> {
    let asked = Instant::now();
    loop {
        let left = PATIENCE.saturating_sub(asked.elapsed());
        let stop = match trace::wait_stop_for(pid, left) {
            Ok(Some(stop)) => stop,
            Ok(None) => return Err(Refusal::DoesNotStop),
            Err(Fault::Gone(_)) => return Err(Refusal::Gone),
            Err(Fault::Kernel(what, e)) => return Err(Refusal::Kernel(what, e)),
        };
        let gone_on = match (stop.event, stop.signal) {
            (PTRACE_EVENT_STOP, libc::SIGTRAP) => return Ok(()),
            (PTRACE_EVENT_STOP, _) => {
                let _ = trace::detach(pid, 0);
                return Err(Refusal::Stopped);
            }
            (_, signal) => trace::resume(pid, signal),
        };
        gone_on.map_err(|e| Refusal::Kernel("pass a signal on to it", e))?;
    }
}

/// Whether the kernel knows restartable sequences at all.
fn kernel_has_sequences() -> bool {
    // SAFETY: refused for its arguments before anything is registered.
    let r = unsafe { libc::syscall(libc::SYS_rseq, 1, 0, 0, 0) };
    r != -1 || Errno::from_io_error(&std::io::Error::last_os_error()) != Some(Errno::NOSYS)
}
