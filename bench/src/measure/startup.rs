//! Start-up: a python3 that does nothing, from the command to its end.

use crate::failure::Outcome;
use crate::launch::{Launch, Side, Streams};
use crate::measurement::{sides, Collected, Measurement};
use crate::promise::{Promise, Relation, Unit};
use crate::user::User;
use crate::workshop::Workshop;
use std::process::Stdio;
use std::time::Instant;

pub struct Startup;

const ID: &str = "python-startup";

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
            let argv = ["python3", "-c", "pass"].map(Into::into).to_vec();
            let launch = Launch { workshop, user: User::Own, side, argv };
            let streams = Streams { input: Stdio::null(), output: Stdio::null(), errors: Stdio::piped() };
            let began = Instant::now();
            let running = launch.start(streams)?;
            let conditions = running.finish()?;
            took[usize::from(side != Side::Native)] = began.elapsed().as_secs_f64() * 1e3;
            if side != Side::Native {
                collected.conditions(&conditions);
            }
        }
        collected.add(ID, Some(took[0]), took[1]);
        Ok(())
    }
}
