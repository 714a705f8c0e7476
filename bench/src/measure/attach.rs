//! Attaching to a program that runs: for how long it stands still, from the stop of its first thread to the first instruction that is its
//! own again, with all of its memory saved in between.

use crate::failure::{Failure, Outcome, Tried};
use crate::launch::{Launch, Side, Streams};
use crate::measurement::{Collected, Measurement};
use crate::pipe;
use crate::promise::{Promise, Relation, Unit};
use crate::user::User;
use crate::workshop::Workshop;
use outlast_supervisor::attach::Attached;
use std::process::{Command, Stdio};

const ID: &str = "attach-100mb";
const MEGABYTES: u32 = 100;

pub struct Attach;

impl Measurement for Attach {
    fn name(&self) -> String {
        format!("attaching to {MEGABYTES} MB")
    }

    fn promises(&self) -> Vec<Promise> {
        let what = "attaching to a program of 100 MB, for how long it stands still".into();
        vec![Promise { id: ID.into(), what, unit: Unit::Milliseconds, relation: Relation::Whole, limit: 60.0 }]
    }

    fn rounds(&self) -> usize {
        11
    }

    fn round(&mut self, number: usize, workshop: &Workshop, collected: &mut Collected) -> Outcome<()> {
        let ready = workshop.work(User::Own).join("ready");
        // Left by the run before.
        let _ = std::fs::remove_file(&ready);
        let (_reader, output) = pipe::roomy()?;
        let numbers = [MEGABYTES, 0].map(|n| n.to_string().into());
        let argv = [workshop.executable("hold").into(), ready.clone().into()].into_iter().chain(numbers).collect();
        let launch = Launch { workshop, user: User::Own, side: Side::Native, argv };
        let mut running = launch.start(Streams { input: Stdio::null(), output, errors: Stdio::piped() })?;
        running.wait_for_file(&ready)?;
        let (pid, name) = (running.program_pid()?.as_raw_nonzero().to_string(), format!("attached-{number}"));
        let outlast = |args: &[&str]| {
            let mut command = Command::new(workshop.executable("outlast"));
            command.args(args).env("OUTLAST_STATE_DIR", workshop.state(User::Own)).output().tried("start outlast")
        };
        let told = outlast(&["attach", &pid, "--name", &name, "--json"])?;
        let attached: Attached = serde_json::from_slice(&told.stdout)
            .map_err(|_| Failure::Unreadable(name.clone(), String::from_utf8_lossy(&told.stderr).into_owned()))?;
        outlast(&["stop", &name, "--timeout", "1ms"])?;
        running.wait()?;
        collected.add(ID, None, attached.pause_us / 1e3);
        Ok(())
    }
}
