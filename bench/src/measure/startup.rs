//! Start-up: a python3 that does nothing, from the command to its end.

use crate::failure::Outcome;
use crate::launch::{Launch, Side, Streams};
use crate::measurement::{sides, Collected, Measurement};
use crate::promise::{Promise, Relation, Unit};
use crate::running::Running;
use crate::user::User;
use crate::workshop::Workshop;
use std::process::Stdio;
use std::time::{Duration, Instant};

pub struct Startup;

const ID: &str = "python-startup";
/// A tracepoint that the last BPF program has just left takes the next one only when no processor can still be there: up to
/// 15 ms, which belong to whoever ended before.
const REST: Duration = Duration::from_millis(50);

impl Measurement for Startup {
    fn name(&self) -> String {
        "start-up of python3".into()
    }

    fn promises(&self) -> Vec<Promise> {
        let what = "python3 -c pass, from the command to its end".into();
        vec![Promise { id: ID.into(), what, unit: Unit::Milliseconds, relation: Relation::Added, limit: 10.0 }]
    }

    fn rounds(&self) -> usize {
        41
    }

    fn round(&mut self, number: usize, workshop: &Workshop, collected: &mut Collected) -> Outcome<()> {
        let mut took = [0.0; 2];
        for side in sides(number, &[]) {
            std::thread::sleep(REST);
            let began = Instant::now();
            let mut running = start(workshop, side)?;
            let status = running.wait()?;
            took[usize::from(side != Side::Native)] = began.elapsed().as_secs_f64() * 1e3;
            running.must_succeed(status)?;
        }
        collected.add(ID, Some(took[0]), took[1]);
        if number == 0 {
            // A look at the session costs time on the processors that the start-up needs: one of its own.
            collected.conditions(&start(workshop, Side::Protected(&[]))?.finish()?);
        }
        Ok(())
    }
}

fn start(workshop: &Workshop, side: Side) -> Outcome<Running> {
    let argv = ["python3", "-c", "pass"].map(Into::into).to_vec();
    let launch = Launch { workshop, user: User::Own, side, argv };
    launch.start(Streams { input: Stdio::null(), output: Stdio::null(), errors: Stdio::piped() })
}
