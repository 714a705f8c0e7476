//! Whom the kernel's OOM killer prefers (`oom_score_adj`, proc(5)). Supervisor and anchor hold little memory and are what brings the
//! program back: where that is allowed they are exempt, also from the end of a whole control group (`memory.oom.group`).

use crate::log::{Entry, Kind};
use crate::processes;
use crate::supervisor::Supervisor;
use libc::pid_t;
use outlast_image::degradation::Degradation;
use std::fs;

/// Never to be killed.
const EXEMPT: i32 = -1000;

/// What the process has.
pub fn of(pid: pid_t) -> Option<i32> {
    fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).ok()?.trim().parse().ok()
}

fn set(pid: pid_t, score: i32) -> bool {
    fs::write(format!("/proc/{pid}/oom_score_adj"), score.to_string()).is_ok()
}

/// Has this process be preferred as another one is.
pub fn share(pid: pid_t) {
    if let Some(score) = of(pid) {
        set(std::process::id() as pid_t, score);
    }
}

/// Exempts a process of ours, if that is allowed.
pub fn exempt(pid: pid_t) {
    set(pid, EXEMPT);
}

impl Supervisor {
    /// Gives a process that takes the program's place what the kernel gave the one before, and not its parent: control groups
    /// and OOM score.
    pub(crate) fn put_in_place(&mut self, pid: pid_t) {
        if of(pid) != Some(self.meta.oom_score) {
            // That of a process which is about to die anyway.
            set(pid, self.meta.oom_score);
        }
        let groups = self.count.as_ref().and_then(|(count, _)| count.groups.as_ref());
        // One that is dead or dying is nowhere, and has a successor that will be put there.
        let is_elsewhere = groups.is_some_and(|groups| !groups.take(pid)) && !processes::is_ending(pid);
        if is_elsewhere && self.generation.degrade(Degradation::ControlGroup) {
            self.log.add(&Entry::new(Kind::Degradation).cause(Degradation::ControlGroup.key()).pid(pid));
        }
    }
}
