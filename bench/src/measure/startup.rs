//! Start-up: an interpreter or virtual machine that does nothing, from the command to its end.

use crate::failure::Outcome;
use crate::launch::{Launch, Side, Streams};
use crate::measurement::{sides, Collected, Measurement};
use crate::promise::{Promise, Relation, Unit};
use crate::running::Running;
use crate::user::User;
use crate::workshop::Workshop;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// What is started.
pub enum Startup {
    Python,
    Java,
}

/// A tracepoint that the last BPF program has just left takes the next one only when no processor can still be there: up to
/// 15 ms, which belong to whoever ended before.
const REST: Duration = Duration::from_millis(50);

impl Measurement for Startup {
    fn name(&self) -> String {
        format!("start-up of {}", self.argv()[0])
    }

    fn promises(&self) -> Vec<Promise> {
        let what = format!("{}, from the command to its end", self.argv().join(" "));
        let (unit, relation, limit) = match self {
            Self::Python => (Unit::Milliseconds, Relation::Added, 10.0),
            Self::Java => (Unit::Percent, Relation::Overhead, 20.0),
        };
        vec![Promise { id: self.id().into(), what, unit, relation, limit }]
    }

    fn rounds(&self) -> usize {
        41
    }

    fn round(&mut self, number: usize, workshop: &Workshop, collected: &mut Collected) -> Outcome<()> {
        let mut took = [0.0; 2];
        for side in sides(number, &[]) {
            std::thread::sleep(REST);
            let began = Instant::now();
            let mut running = self.start(workshop, side)?;
            let status = running.wait()?;
            took[usize::from(side != Side::Native)] = began.elapsed().as_secs_f64() * 1e3;
            running.must_succeed(status)?;
        }
        collected.add(self.id(), Some(took[0]), took[1]);
        if number == 0 {
            // A look at the session costs time on the processors that the start-up needs: one of its own.
            collected.conditions(&self.start(workshop, Side::Protected(&[]))?.finish()?);
        }
        Ok(())
    }
}

impl Startup {
    fn id(&self) -> &'static str {
        match self {
            Self::Python => "python-startup",
            Self::Java => "java-startup",
        }
    }

    fn argv(&self) -> &'static [&'static str] {
        match self {
            Self::Python => &["python3", "-c", "pass"],
            Self::Java => &["java", "-version"],
        }
    }

    fn start(&self, workshop: &Workshop, side: Side) -> Outcome<Running> {
        let argv = self.argv().iter().map(Into::into).collect();
        let launch = Launch { workshop, user: User::Own, side, argv };
        launch.start(Streams { input: Stdio::null(), output: Stdio::null(), errors: Stdio::piped() })
    }
}
