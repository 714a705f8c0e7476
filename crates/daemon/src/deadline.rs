//! The kernel kills the daemon if executions are not let go.

use nix::errno::Errno;
use nix::sys::signal::{SigEvent, SigevNotify, Signal};
use nix::sys::time::TimeSpec;
use nix::sys::timer::{Expiration, Timer, TimerSetTimeFlags};
use nix::time::ClockId;
use std::time::Duration;

/// How long nobody need let an execution go.
const PATIENCE: Duration = Duration::from_secs(5);

/// A timer that kills this process, also where it is stopped or a thread of it hangs: the kernel then lets all executions go.
pub struct Deadline(Timer);

// SAFETY: it holds the number of a timer, which belongs to the process: any thread may set it.
unsafe impl Send for Deadline {}

impl Deadline {
    /// From now on.
    pub fn begin() -> Result<Self, Errno> {
        let kill = SigevNotify::SigevSignal { signal: Signal::SIGKILL, si_value: 0 };
        let mut deadline = Self(Timer::new(ClockId::CLOCK_MONOTONIC, SigEvent::new(kill))?);
        deadline.put_off()?;
        Ok(deadline)
    }

    /// All is well.
    pub fn put_off(&mut self) -> Result<(), Errno> {
        self.0.set(Expiration::OneShot(TimeSpec::from(PATIENCE)), TimerSetTimeFlags::empty())
    }
}
