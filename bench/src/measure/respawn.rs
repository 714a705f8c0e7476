//! Rung 2 of the ladder: after SIGKILL a new process goes on. What the kernel needs to take a process of that size down
//! is not ours: an unprotected one is killed beside it and its time subtracted.

use crate::failure::{Failure, Outcome, Tried};
use crate::launch::{Launch, Side, Streams};
use crate::measurement::{sides, Collected, Measurement};
use crate::pipe;
use crate::promise::{Promise, Relation, Unit};
use crate::running::{Running, LIMIT};
use crate::user::User;
use crate::workshop::Workshop;
use outlast_supervisor::clock;
use rustix::process::{kill_process, Signal};
use std::process::Stdio;
use std::sync::atomic::Ordering::Acquire;
use std::time::Instant;

/// A size of process and how many commits it made before it is killed.
pub struct Respawn {
    pub megabytes: u32,
    pub commits: u32,
    /// Milliseconds beyond the teardown.
    pub limit: f64,
}

impl Respawn {
    fn id(&self) -> String {
        let size = if self.megabytes == 1024 { "1gib".into() } else { format!("{}mb", self.megabytes) };
        let after = if self.commits == 0 { "".into() } else { format!("-after-{}", self.commits) };
        format!("respawn-{size}{after}")
    }

    /// Milliseconds from the signal to the end of the process, or to its successor's first instruction.
    fn run(&self, workshop: &Workshop, side: Side, collected: &mut Collected) -> Outcome<f64> {
        let ready = workshop.work(User::Own).join("ready");
        // Left by the run before.
        let _ = std::fs::remove_file(&ready);
        let (_reader, output) = pipe::roomy()?;
        let numbers = [self.megabytes, self.commits].map(|n| n.to_string().into());
        let argv = [workshop.executable("hold").into(), ready.clone().into()].into_iter().chain(numbers).collect();
        let launch = Launch { workshop, user: User::Own, side, argv };
        let mut running = launch.start(Streams { input: Stdio::null(), output, errors: Stdio::piped() })?;
        running.wait_for_file(&ready)?;
        let pid = running.program_pid()?;
        let kill = || {
            let began = clock::monotonic();
            kill_process(pid, Signal::KILL).tried("send SIGKILL").map(|()| began)
        };
        let milliseconds = |began: u64, ended: u64| ended.saturating_sub(began) as f64 / 1e6;
        if side == Side::Native {
            let began = kill()?;
            running.wait()?;
            return Ok(milliseconds(began, clock::monotonic()));
        }
        collected.conditions(&running.conditions()?);
        let began = kill()?;
        await_resumption(&mut running)?;
        Ok(milliseconds(began, running.session()?.control().t_resumed.load(Acquire)))
    }
}

fn await_resumption(running: &mut Running) -> Outcome<()> {
    let until = Instant::now() + LIMIT;
    while running.session()?.control().restored.load(Acquire) == 0 {
        if Instant::now() > until {
            return Err(Failure::TooLong("a recovery".into(), LIMIT.as_secs()));
        }
        std::thread::yield_now();
    }
    Ok(())
}

impl Measurement for Respawn {
    fn name(&self) -> String {
        format!("recoveries of {} MB", self.megabytes)
    }

    fn promises(&self) -> Vec<Promise> {
        let size = if self.megabytes == 1024 { "1 GiB".into() } else { format!("{} MB", self.megabytes) };
        let after = match self.commits {
            0 => String::new(),
            n => format!(" after {n} random commits"),
        };
        let what = format!("SIGKILL to running again beyond teardown, {size}{after}");
        let (unit, relation) = (Unit::Milliseconds, Relation::Added);
        vec![Promise { id: self.id(), what, unit, relation, limit: self.limit }]
    }

    fn rounds(&self) -> usize {
        if self.megabytes > 100 {
            5
        } else {
            11
        }
    }

    fn round(&mut self, number: usize, workshop: &Workshop, collected: &mut Collected) -> Outcome<()> {
        let mut took = [0.0; 2];
        for side in sides(number, &[]) {
            took[usize::from(side != Side::Native)] = self.run(workshop, side, collected)?;
        }
        collected.add(&self.id(), Some(took[0]), took[1]);
        Ok(())
    }
}
