//! A process on its way to being another program, traced up to the stop at which it is that and has not run an instruction of it.

use libc::pid_t;
use outlast_supervisor::trace::{self, Fault, Stop};
use rustix::io::Errno;
use std::time::{Duration, Instant};

/// A thread that executes, traced by ours. Should ours end, it goes on untraced.
pub struct Executing(pid_t);

/// How long an execution may take before its process is left alone. Until then it only is a little slower with signals.
const PATIENCE: Duration = Duration::from_secs(30);
/// And how long after that, before it is given up: the end of the thread that traces it ends that, too.
const LAST_PATIENCE: Duration = Duration::from_secs(60);
/// How often it is looked at: at first, and at last.
const PULSE: [Duration; 2] = [Duration::from_micros(50), Duration::from_millis(20)];

impl Executing {
    pub fn trace(thread: pid_t) -> Result<Self, Errno> {
        trace::seize_for_exec(thread)?;
        Ok(Self(thread))
    }

    /// Waits until it has become another program, and stands there; its process. None: the execution failed, and it goes on as what
    /// it was.
    pub fn wait(self) -> Result<Option<pid_t>, Fault> {
        let began = Instant::now();
        let mut pulse = PULSE[0];
        let mut is_called = false;
        loop {
            match trace::any_stopped()? {
                Some((pid, Stop { event: libc::PTRACE_EVENT_EXEC, .. })) => return Ok(Some(pid)),
                Some((pid, Stop { event: libc::PTRACE_EVENT_STOP, .. })) if is_called => {
                    trace::detach(pid, 0).map_err(|e| Fault::Kernel("let it go", e))?;
                    return Ok(None);
                }
                // By job control: it stays stopped.
                Some((pid, Stop { event: libc::PTRACE_EVENT_STOP, signal })) if signal != libc::SIGTRAP => {
                    trace::listen(pid).map_err(|e| Fault::Kernel("leave it stopped", e))?;
                }
                Some((pid, Stop { event, signal })) => {
                    let signal = if event == 0 { signal } else { 0 };
                    trace::resume(pid, signal).map_err(|e| Fault::Kernel("let it run", e))?;
                }
                None if began.elapsed() > PATIENCE && !is_called => {
                    trace::interrupt(self.0).map_err(|e| Fault::Kernel("stop it", e))?;
                    is_called = true;
                }
                None if began.elapsed() > LAST_PATIENCE => return Ok(None),
                None => {
                    std::thread::sleep(pulse);
                    pulse = (pulse * 2).min(PULSE[1]);
                }
            }
        }
    }
}
