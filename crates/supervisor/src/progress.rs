//! How far a command is that takes its time, for a person at a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use outlast_store::PAGE;

/// What is smaller takes no time that anybody would notice: bytes.
const WORTH: u64 = 64 << 20;
/// In so many parts is told how far something is.
pub const WHOLE: u64 = 1000;

/// A bar on standard error; none where that is no terminal.
pub struct Bar(ProgressBar);

impl Bar {
    /// For whoever has no terminal of its own: what a supervisor has there is the program's.
    pub fn none() -> Self {
        Self(ProgressBar::hidden())
    }

    /// `pages`: what there is to be done.
    pub fn of(what: &'static str, pages: u64) -> Self {
        if pages.saturating_mul(PAGE) < WORTH {
            return Self::none();
        }
        let bar = ProgressBar::with_draw_target(Some(WHOLE), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{msg} [{bar:30}] {percent} %") {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message(what);
        bar.tick();
        Self(bar)
    }

    /// So many parts of [`WHOLE`] are done.
    pub fn at(&self, part: u64) {
        self.0.set_position(part.min(WHOLE));
    }
}

impl Drop for Bar {
    /// Nothing of it stays.
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Part `turn` of two passes over all of something.
pub fn half(turn: u64, done: u64, all: u64) -> u64 {
    (turn * WHOLE + done.saturating_mul(WHOLE) / all.max(1)) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_passes_are_the_whole() {
        assert_eq!([half(0, 0, 7), half(0, 7, 7), half(1, 0, 7), half(1, 7, 7)], [0, 500, 500, 1000]);
        assert_eq!(half(0, 0, 0), 0);
    }
}
