//! Waits for the end of a run, and for moments of it.

use crate::launch::Run;
use libc::pid_t;
use outlast_supervisor::end::End;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Set by Ctrl-C; experiments under way are then given up, and not counted.
pub static INTERRUPTED: AtomicBool = AtomicBool::new(false);

pub fn is_interrupted() -> bool {
    INTERRUPTED.load(Relaxed)
}

/// Processor time of a process so far.
pub fn processor_time(pid: pid_t) -> Option<Duration> {
    let mut clock = 0;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: both pointers are to objects of ours of the right types.
    let told = unsafe { libc::clock_getcpuclockid(pid, &mut clock) == 0 && libc::clock_gettime(clock, &mut time) == 0 };
    told.then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Ended,
    TooLate,
    /// The client has failed, and the target goes on without it.
    Deserted,
    Flood,
    Interrupted,
}

/// A client that has failed may have seen what the target dies of just then.
const GRACE: Duration = Duration::from_secs(1);

/// Waits until target and client have ended; calls `tick` every millisecond or so. `has_failed` tells of an end of the client's
/// that is not the usual one: nobody may be left then to end the target.
pub fn for_end(
    run: &mut Run,
    deadline: Instant,
    has_failed: impl Fn(End) -> bool,
    mut tick: impl FnMut(&Run),
) -> Ending {
    let mut deserted: Option<Instant> = None;
    loop {
        if run.look() {
            return Ending::Ended;
        }
        if run.is_flood() {
            return Ending::Flood;
        }
        if is_interrupted() {
            return Ending::Interrupted;
        }
        if Instant::now() >= deadline {
            return Ending::TooLate;
        }
        if run.client_end().is_some_and(&has_failed) && deserted.get_or_insert_with(Instant::now).elapsed() >= GRACE {
            return Ending::Deserted;
        }
        tick(run);
        std::thread::sleep(Duration::from_millis(1));
    }
}
