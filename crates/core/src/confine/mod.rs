//! Confinement of modules (RMK, §3.3, *Self-Checking*): who runs is noted, and who fails is ended.
//!
//! A panic unwinds to here. A trap, an endless loop and a flood of memory leave the module somewhere in the middle, perhaps with the
//! allocator's lock: nothing of this process can be trusted to go on then. Whoever owns the process gives a way out
//! ([`guard`]), a function that executes the program again in the same process, say; it is called from a handler of signals.

mod memory;
mod watch;

pub use memory::Counting;
pub use watch::guard;

use crate::module::Budget;
use std::cell::Cell;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::time::{Duration, Instant};

/// How a module failed.
#[derive(Clone, Debug, PartialEq, Eq, displaydoc::Display)]
pub enum Overrun {
    /// it panicked: {0}
    Panic(String),
    /// it took longer than it may
    Time,
    /// it took more memory than it may
    Memory,
    /// signal {0} met it
    Trap(i32),
    /// it failed: {0}
    Fault(String),
}

/// Leaves a process that cannot go on, because this module met that.
pub type WayOut = fn(&'static str, Overrun) -> !;

/// Who runs on this thread.
struct Running {
    /// Empty: no module.
    name: Cell<&'static str>,
    /// It is in a pin's operation, which counts for nobody.
    is_suspended: Cell<bool>,
    suspended: Cell<Duration>,
    /// Bytes that it has, beyond those it had.
    memory: Cell<isize>,
    memory_limit: Cell<isize>,
}

thread_local! {
    static RUNNING: Running = const {
        Running {
            name: Cell::new(""),
            is_suspended: Cell::new(false),
            suspended: Cell::new(Duration::ZERO),
            memory: Cell::new(0),
            memory_limit: Cell::new(isize::MAX),
        }
    };
}

impl Running {
    /// The module that is to be blamed for what happens now.
    fn blamed(&self) -> Option<&'static str> {
        let name = self.name.get();
        (!name.is_empty() && !self.is_suspended.get()).then_some(name)
    }
}

/// Runs a module's code; why it failed, if it did. None runs yet on this thread.
pub fn run<T>(name: &'static str, budget: Budget, body: impl FnOnce() -> T) -> Result<T, Overrun> {
    RUNNING.with(|running| {
        running.is_suspended.set(false);
        running.suspended.set(Duration::ZERO);
        running.memory.set(0);
        running.memory_limit.set(budget.memory.try_into().unwrap_or(isize::MAX));
        running.name.set(name);
        let began = Instant::now();
        let watched = watch::begin(budget.time);
        let result = catch_unwind(AssertUnwindSafe(body));
        watch::end(watched);
        let took = began.elapsed().saturating_sub(running.suspended.get());
        running.name.set("");
        match result {
            Err(panic) => Err(Overrun::Panic(message(&*panic))),
            Ok(_) if running.memory.get() > running.memory_limit.get() => Err(Overrun::Memory),
            Ok(_) if took > budget.time => Err(Overrun::Time),
            Ok(result) => Ok(result),
        }
    })
}

/// Runs what the running module has asked of others; which may be asked for in the course of that.
pub fn suspended<T>(body: impl FnOnce() -> T) -> T {
    RUNNING.with(|running| {
        if running.is_suspended.replace(true) {
            return body();
        }
        let began = Instant::now();
        let result = body();
        running.suspended.set(running.suspended.get() + began.elapsed());
        running.is_suspended.set(false);
        result
    })
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}
