//! Rung 1 of the ladder: a fatal signal is met by a rollback in place.

use crate::failure::{Failure, Outcome, Tried};
use crate::launch::{Launch, Side, Streams};
use crate::measurement::{Collected, Measurement};
use crate::pipe;
use crate::promise::{Promise, Relation, Unit};
use crate::running::Running;
use crate::trial::EACH;
use crate::user::User;
use crate::workshop::Workshop;
use outlast_image::event::event_kind;
use rustix::process::{kill_process, Signal};
use std::process::Stdio;
use std::sync::atomic::Ordering::Acquire;
use std::time::{Duration, Instant};

pub struct Rollback;

const ID: &str = "rollback-100";
/// Crashes a round; each is a figure of its own.
const CRASHES: usize = 8;
/// Commits of a turn: crashes that lie closer together count as the same one, and would end the program.
const TURN: u64 = 100;
/// How long a turn or a rollback may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// A program that has made no commit for so long is computing, its 100 pages dirtied.
const STILL: Duration = Duration::from_millis(2);

impl Measurement for Rollback {
    fn name(&self) -> String {
        "rollbacks in place".into()
    }

    fn promises(&self) -> Vec<Promise> {
        let what = "rollback in place after SIGSEGV, 100 dirty pages".into();
        vec![Promise { id: ID.into(), what, unit: Unit::Microseconds, relation: Relation::Whole, limit: 120.0 }]
    }

    fn rounds(&self) -> usize {
        5
    }

    fn round(&mut self, _: usize, workshop: &Workshop, collected: &mut Collected) -> Outcome<()> {
        let (_reader, output) = pipe::roomy()?;
        let argv = vec![workshop.executable("crash").into()];
        // Gathered outputs leave later, when the pages are dirty: their commit would have them, and the rollback none.
        let launch = Launch { workshop, user: User::Own, side: Side::Protected(EACH), argv };
        let mut running = launch.start(Streams { input: Stdio::null(), output, errors: Stdio::piped() })?;
        let (mut seen, mut commits) = (0, 0);
        for _ in 0..CRASHES {
            commits = await_stillness(&mut running, commits)?;
            // What happened before the crash is not its cost.
            running.session()?.events_since(&mut seen);
            kill_process(running.program_pid()?, Signal::SEGV).tried("send SIGSEGV")?;
            let took = await_rollback(&mut running, &mut seen)?;
            collected.add(ID, None, took.as_secs_f64() * 1e6);
        }
        collected.conditions(&running.conditions()?);
        collected.note("from the signal's arrival in the engine to the program's next instruction");
        Ok(())
    }
}

/// Waits until the program computes, one turn or more after it had made `before` commits; tells how many it has made now.
fn await_stillness(running: &mut Running, before: u64) -> Outcome<u64> {
    let until = Instant::now() + PATIENCE;
    let mut last = (0, Instant::now());
    while Instant::now() < until {
        let commits = running.session()?.control().commits.load(Acquire);
        match commits == last.0 && commits >= before + TURN {
            true if last.1.elapsed() > STILL => return Ok(commits),
            true => std::thread::sleep(STILL / 20),
            false => last = (commits, Instant::now()),
        }
    }
    Err(Failure::TooLong("a turn of the program to be crashed".into(), PATIENCE.as_secs()))
}

/// The time that the engine reports a rollback to have taken.
///
/// # Errors
/// Among others: the rollback failed, and the program was respawned in its place.
fn await_rollback(running: &mut Running, seen: &mut u32) -> Outcome<Duration> {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        for event in running.session()?.events_since(seen) {
            match event.kind {
                event_kind::ROLLBACK => return Ok(Duration::from_nanos(event.duration_ns)),
                event_kind::RESTORED => {
                    let told = format!("restored on rung {} in place of 1", event.rung);
                    return Err(Failure::Unreadable("the engine".into(), told));
                }
                _ => {}
            }
        }
        std::thread::sleep(STILL / 20);
    }
    Err(Failure::TooLong("a rollback".into(), PATIENCE.as_secs()))
}
