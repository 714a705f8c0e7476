//! What the program closed since the last commit lives on under hidden numbers until the next one.

use super::Descriptors;
use crate::sys::{nr, syscall};
use outlast_image::layout::{ENGINE_FDS, HIDING_FDS};

/// How many closes can be delayed until the next commit.
pub const DELAYED: usize = 48;

impl Descriptors {
    /// A number that can hide the next delayed close, if there is room for one.
    pub fn hiding_place(&self) -> Option<i32> {
        let first = self.own + ENGINE_FDS;
        (first..first + HIDING_FDS).find(|&fd| self.delayed_count < DELAYED && !self.is_open(fd) && !self.is_own(fd))
    }

    /// `fd` now lives on as `hidden`.
    pub fn delay(&mut self, fd: i32, hidden: i32) {
        self.delayed[self.delayed_count] = (hidden, fd);
        self.delayed_count += 1;
    }

    /// Really closes what the program closed before the commit that was just published.
    pub fn close_delayed(&mut self) {
        for i in 0..self.delayed_count {
            // SAFETY: the hidden number is the engine's.
            unsafe { syscall!(nr::CLOSE, self.delayed[i].0) };
        }
        self.delayed_count = 0;
    }
}
