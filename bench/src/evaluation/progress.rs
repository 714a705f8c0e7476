//! How far an evaluation is: a bar in tenths of a second, as they were estimated.

use indicatif::{ProgressBar, ProgressStyle};
use std::cell::Cell;
use std::time::Duration;

pub struct Progress {
    bar: ProgressBar,
    /// What is still too short to be shown.
    rest: Cell<Duration>,
}

const TENTH: Duration = Duration::from_millis(100);

impl Progress {
    pub fn new(tenths: u64) -> Self {
        let bar = ProgressBar::new(tenths);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {percent} % {elapsed} (left: {eta})  {msg}") {
            bar.set_style(style);
        }
        Self { bar, rest: Cell::new(Duration::ZERO) }
    }

    pub fn say(&self, what: String) {
        self.bar.set_message(what);
    }

    /// A part is done that was estimated to take so long.
    pub fn passed(&self, time: Duration) {
        let whole = self.rest.get() + time;
        let tenths = whole.as_millis() / TENTH.as_millis();
        self.rest.set(whole - TENTH * tenths as u32);
        self.bar.inc(tenths as u64);
    }

    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}
