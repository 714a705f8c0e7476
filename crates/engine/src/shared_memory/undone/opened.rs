//! What the program can write to until the next commit.

use outlast_image::layout::PAGE;

/// As many bytes at most are opened at a time.
const MOST_AHEAD: u64 = 16 * PAGE;
const RUNS: usize = 512;

/// Ranges of addresses.
pub struct Opened {
    pub runs: [(u64, u64); RUNS],
    pub count: usize,
}

impl Opened {
    pub const NONE: Opened = Opened { runs: [(0, 0); RUNS], count: 0 };

    /// False: there is no room.
    pub fn add(&mut self, start: u64, end: u64) -> bool {
        if let Some(last) = self.runs[..self.count].last_mut().filter(|last| last.0 <= start && start <= last.1) {
            last.1 = last.1.max(end);
            return true;
        }
        let fits = self.count < RUNS;
        if fits {
            self.runs[self.count] = (start, end);
            self.count += 1;
        }
        fits
    }

    /// How far to open from `page` on: twice as much as last time, if that ended there.
    pub fn ahead(&self, page: u64) -> u64 {
        match self.runs[..self.count].last() {
            Some(&(start, end)) if end == page => (end - start).min(MOST_AHEAD),
            _ => PAGE,
        }
    }
}
