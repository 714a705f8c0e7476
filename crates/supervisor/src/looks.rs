//! The program as modules have it looked at: what is there to be looked at, and who is told of what they found.

use crate::decision::{Leak, Process, Resource};
use crate::hangs;
use crate::log::{Entry, Kind};
use crate::reports;
use crate::supervisor::Supervisor;
use outlast_image::control::state;
use std::sync::atomic::Ordering::Acquire;

impl Supervisor {
    /// Has it looked at if it is time. On every round, so that the mechanisms know which process the program is.
    pub(crate) fn look_at_program(&mut self) {
        let control = self.generation.control();
        let protected = control.state.load(Acquire) == state::PROTECTED && control.stopping.load(Acquire) == 0;
        let runs = protected && self.recovering.is_none() && self.postponed.is_none() && self.kin.is_alive(self.pid);
        let process = runs.then(|| Process {
            pid: self.pid,
            life: self.meta.recoveries_before + reports::recoveries(control),
            engine_fds: self.generation.session.inject_args().session_fd,
        });
        let (pid, threads) = (self.pid, &control.threads);
        let leaks = self.decides.look(process, &|| hangs::waits(pid, threads));
        self.log_failures();
        for leak in leaks {
            self.log.add(&Entry::new(Kind::Leaks).cause(told(&leak)).pid(self.pid));
        }
    }
}

/// In the words of the log.
fn told(Leak { of, from, to, within, limit }: &Leak) -> String {
    let what = match of {
        Resource::Descriptors => "descriptors",
        Resource::Memory => "bytes of memory",
    };
    format!("{what}: from {from} to {to} within {}, of {limit} that it may have", humantime::format_duration(*within))
}
