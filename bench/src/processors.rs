//! Programs that are to stay on one processor.

use crate::failure::{Outcome, Tried};
use rustix::thread::{sched_getaffinity, sched_setaffinity, CpuSet};

/// Has what is started in `within` stay on one processor.
pub fn on_processor<T>(number: usize, within: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    let before = sched_getaffinity(None).tried("ask for processors")?;
    let mut one = CpuSet::new();
    one.set(number);
    sched_setaffinity(None, &one).tried("stay on a processor")?;
    let done = within();
    sched_setaffinity(None, &before).tried("leave the processor")?;
    done
}
