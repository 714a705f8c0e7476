//! Ends a run that waits for ever because a kill inside an operation lost what it waits for.
//!
//! That can happen only without io_uring, and it is the documented window, not a failure; everything else that hangs is
//! left to the test's watchdog.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::hammer::Swing;
use crate::tree;

/// A run that works takes a fraction of this.
const LONGEST: Duration = Duration::from_secs(20);

/// Watches one run.
pub struct Patience {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<bool>,
}

impl Patience {
    pub fn start(swing: Arc<Swing>) -> Patience {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = thread::spawn(move || {
            let until = Instant::now() + LONGEST;
            while Instant::now() < until {
                if stopped.load(Relaxed) {
                    return false;
                }
                thread::sleep(Duration::from_millis(2));
            }
            let lost = swing.in_operation.load(Relaxed) > 0;
            if lost {
                tree::sweep();
            }
            lost
        });
        Patience { stop, thread }
    }

    /// Stops watching; true if the run was ended.
    pub fn end(self) -> bool {
        self.stop.store(true, Relaxed);
        self.thread.join().expect("the watching thread does not panic")
    }
}
