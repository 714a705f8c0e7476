//! What it costs that the scheduler is watched: to work that switches as often as it can, and to work that only computes.
//!
//! Short turns with a daemon that watches and with one that is stopped alternate: whoever else uses the machine disturbs both alike. Each turn with
//! it has a look in it, since it lasts as long as it takes from one to the next. Counted is processor time of the work, of the middle half of the turns; the
//! daemon's comes on top, by the part of a processor that it had in all of them, its rare searches for programs included. The work stays
//! on one processor: where the kernel puts threads that wake each other makes more of a difference than what is measured.

use crate::failure::{Failure, Outcome, Tried};
use crate::measurement::{Collected, Measurement};
use crate::processors::on_processor;
use crate::promise::{Promise, Relation, Unit};
use crate::statistics::middle;
use crate::workshop::Workshop;
use rustix::thread::sched_getcpu;
use std::hint::black_box;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

pub struct OsHang;

const SWITCHES: &str = "oshang-switches";
const COMPUTES: &str = "oshang-computes";
/// Pairs of turns in a round, and for how long one works.
const TURNS: usize = 20;
const TURN: Duration = Duration::from_millis(250);

/// Ended with the value.
pub struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Daemon {
    pub fn begin(workshop: &Workshop) -> Outcome<Self> {
        let folder = tempfile::tempdir_in(std::env::temp_dir()).tried("make a folder")?.keep();
        let mut command = Command::new(workshop.executable("outlast"));
        command.args(["daemon", "--oshang", "only", "--lock"]).arg(folder.join("daemon.lock"));
        command.stdin(Stdio::null()).stderr(Stdio::null());
        let daemon = Self(command.spawn().tried("start outlast")?);
        // It reads the kernel's types first.
        thread::sleep(Duration::from_millis(500));
        let watches = folder.join("daemon.json").exists();
        let _ = std::fs::remove_dir_all(folder);
        watches.then_some(daemon).ok_or_else(|| Failure::NotHere("the scheduler cannot be watched".into()))
    }

    /// Processor time that it has had.
    pub fn time(&self) -> Duration {
        let of = |thread: i32| outlast_supervisor::processes::schedule_of(self.0.id() as i32, thread);
        let threads = outlast_supervisor::processes::threads_of(self.0.id() as i32);
        Duration::from_nanos(threads.into_iter().filter_map(of).map(|(ran, _)| ran).sum())
    }

    fn go_on(&self, is_to: bool) {
        let signal = if is_to { libc::SIGCONT } else { libc::SIGSTOP };
        // SAFETY: plain system call; the process is our child and not reaped.
        unsafe { libc::kill(self.0.id() as i32, signal) };
    }
}

impl Measurement for OsHang {
    fn name(&self) -> String {
        "watching the scheduler".into()
    }

    fn promises(&self) -> Vec<Promise> {
        let of = |id, what| Promise::new(id, what, Unit::Percent, Relation::Overhead, 0.1);
        vec![
            of(SWITCHES, "two threads that only wake each other, the scheduler watched"),
            of(COMPUTES, "a thread that only computes, the scheduler watched"),
        ]
    }

    fn rounds(&self) -> usize {
        15
    }

    fn round(&mut self, number: usize, workshop: &Workshop, collected: &mut Collected) -> Outcome<()> {
        let daemon = Daemon::begin(workshop)?;
        let [switches, computes] = on_processor(sched_getcpu(), || {
            let (mut here, there) = UnixStream::pair().tried("make a connection")?;
            let answers = thread::spawn(move || answer(there));
            let switches = alternate(&daemon, number, |count| switch(&mut here, count));
            let computes = alternate(&daemon, number, compute);
            drop(here);
            let _ = answers.join();
            Ok([switches, computes])
        })?;
        for (id, [watched, alone]) in [(SWITCHES, switches), (COMPUTES, computes)] {
            collected.add(id, Some(alone), watched);
        }
        Ok(())
    }
}

/// Processor time of this process, all of its threads.
fn own_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// Milliseconds that a turn takes with and without.
fn alternate(daemon: &Daemon, number: usize, mut work: impl FnMut(u64)) -> [f64; 2] {
    let mut count = 1;
    let mut timed = |count: u64| {
        let began = own_time();
        work(count);
        own_time().saturating_sub(began)
    };
    while timed(count) < TURN {
        count += count.div_ceil(4);
    }
    let mut took = [Vec::new(), Vec::new()];
    let (mut daemon_had, mut passed) = ([0.0; 2], [0.0; 2]);
    for turn in 0..TURNS {
        for at in [(number + turn) % 2, (number + turn + 1) % 2] {
            daemon.go_on(at == 0);
            let (began, daemons) = (Instant::now(), daemon.time());
            took[at].push(timed(count).as_secs_f64() * 1e3);
            daemon_had[at] += daemon.time().saturating_sub(daemons).as_secs_f64();
            passed[at] += began.elapsed().as_secs_f64();
        }
    }
    daemon.go_on(true);
    let [watched, alone] = took.map(middle);
    [watched * (1.0 + daemon_had[0] / passed[0]), alone * (1.0 + daemon_had[1] / passed[1])]
}

fn switch(here: &mut UnixStream, count: u64) {
    let mut byte = [0];
    for _ in 0..count {
        let _ = here.write_all(&byte).and_then(|()| here.read_exact(&mut byte));
    }
}

fn answer(mut there: UnixStream) {
    let mut byte = [0];
    while there.read_exact(&mut byte).is_ok() && there.write_all(&byte).is_ok() {}
}

fn compute(count: u64) {
    let mut x = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..count * 1000 {
        x = black_box(x ^ (x << 13)).rotate_left(7);
    }
    black_box(x);
}
