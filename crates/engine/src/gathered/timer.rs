//! The timer that has gathered outputs leave when the program makes no call.

use crate::periodic;

const CLOCK_MONOTONIC: u64 = 1;
/// Its time, and ticks of the time stamp counter after which it is set anew.
const NS: u64 = 400_000;
const FRESH: u64 = 300_000;
/// Ticks after which a knock is somebody else's.
const KNOCKS: u64 = 4_000_000;

/// See the module.
pub struct Timer {
    /// Its id plus one; 0: none yet in this process; -1: there is none to be had.
    id: i32,
    /// When it was set, as a time stamp; 0: it does not run.
    set: u64,
}

impl Timer {
    pub const fn new() -> Timer {
        Timer { id: 0, set: 0 }
    }

    /// Starts it. In a loop that prints it is always set and never comes. False: there is none to be had.
    pub fn start(&mut self, now: u64) -> bool {
        if self.id == 0 {
            self.id = periodic::knock_at_all(CLOCK_MONOTONIC, NS, 0).map_or(-1, |id| id + 1);
            self.set = now;
        } else if self.id > 0 && now.wrapping_sub(self.set) >= FRESH {
            periodic::set(self.id - 1, NS, 0);
            self.set = now;
        }
        self.id > 0
    }

    /// The same, whenever it was started last.
    pub fn start_anew(&mut self, now: u64) {
        self.set = 0;
        self.start(now);
    }

    /// It comes no more.
    pub fn stop(&mut self) {
        if self.id > 0 && self.set != 0 {
            periodic::set(self.id - 1, 0, 0);
            self.set = 0;
        }
    }

    /// May a knock be its own?
    pub fn may_have_knocked(&self, now: u64) -> bool {
        self.id > 0 && now.wrapping_sub(self.set) < KNOCKS
    }

    /// That of a dead process is gone.
    pub fn forget(&mut self) {
        *self = Timer::new();
    }
}
