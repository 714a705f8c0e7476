//! Kills components.

use std::time::{Duration, Instant};

use outlast_glue_rt::Handle;

/// Returns when it was killed, after its death was seen.
pub fn kill(handle: &Handle) -> Instant {
    let deaths = handle.deaths().0;
    let start = Instant::now();
    let instance = handle.instance() as libc::pid_t;
    assert!(instance > 1, "the component serves");
    // SAFETY: plain call; the number is that of our component's process.
    unsafe { libc::kill(instance, libc::SIGKILL) };
    while handle.deaths().0 == deaths && start.elapsed() < Duration::from_secs(10) {
        std::thread::yield_now();
    }
    start
}
