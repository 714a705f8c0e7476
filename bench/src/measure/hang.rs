//! What it costs that a program's threads are watched for hangs: to one that only computes, and to a server whose thread passes a section at
//! every system call.
//!
//! A program that is watched and one that is protected alike, but not watched, run at the same time and work in short turns, one after the
//! other: whoever else uses the machine, and whatever its processors' speed does, concerns both. Counted is the processor time of all that belongs to
//! the one whose turn it is, its supervisor among it; of the turns, the middle half.

use super::servers::clients::{self, Load};
use crate::cpu;
use crate::evaluation::rmk::web::{self, Site};
use crate::failure::{Failure, Outcome, Tried};
use crate::launch::{Launch, Side, Streams};
use crate::measurement::{Collected, Measurement};
use crate::processors::on_processor;
use crate::promise::{Promise, Relation, Unit};
use crate::running::Running;
use crate::statistics::middle;
use crate::user::User;
use crate::workshop::Workshop;
use rustix::process::Pid;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::time::Duration;

pub struct Hang;

const COMPUTES: &str = "hang-computes";
const SERVES: &str = "hang-serves";
const WATCHED: Side = Side::Protected(&["--commit", "manual", "--hang"]);
const ALONE: Side = Side::Protected(&["--commit", "manual"]);
/// Pairs of turns in a round.
const TURNS: usize = 20;
/// Thousands of steps in a turn that computes, about 100 ms; and how long a turn of the server is.
const STEPS: &str = "120000";
const TURN: Duration = Duration::from_millis(100);
/// First answers of a new process take longer, and so do system calls that are not rewritten yet.
const WARM_UP: Duration = Duration::from_secs(1);
const CLIENTS: usize = 10;
const CLIENTS_PROCESSOR: usize = 1;

impl Measurement for Hang {
    fn name(&self) -> String {
        "the detector of hangs".into()
    }

    fn promises(&self) -> Vec<Promise> {
        let of = |id, what| Promise::new(id, what, Unit::Percent, Relation::Overhead, 0.3);
        vec![
            of(COMPUTES, "a thread that only computes, watched for hangs"),
            of(SERVES, "processor time of a request to lighttpd, watched for hangs"),
        ]
    }

    fn rounds(&self) -> usize {
        15
    }

    fn round(&mut self, number: usize, workshop: &Workshop, collected: &mut Collected) -> Outcome<()> {
        let mut both = [Computing::start(workshop, WATCHED)?, Computing::start(workshop, ALONE)?];
        let [watched, alone] = alternate(number, |at| both[at].turn())?;
        collected.add(COMPUTES, Some(alone), watched);
        drop(both);

        let site = Site::make(workshop, number as u64)?;
        let mut both = [Serving::start(&site, workshop, WATCHED)?, Serving::start(&site, workshop, ALONE)?];
        for server in &mut both {
            server.turn(WARM_UP)?;
        }
        let [watched, alone] = alternate(number, |at| both[at].turn(TURN))?;
        collected.conditions(&both[0].server.running.conditions()?);
        collected.add(SERVES, Some(alone), watched);
        for serving in both {
            serving.server.end()?;
        }
        Ok(())
    }
}

/// What a turn of each takes, the middle half of all turns. Each goes first as often as the other.
fn alternate(number: usize, mut turn: impl FnMut(usize) -> Outcome<f64>) -> Outcome<[f64; 2]> {
    let mut took = [Vec::new(), Vec::new()];
    for pair in 0..TURNS {
        for at in [(number + pair) % 2, (number + pair + 1) % 2] {
            took[at].push(turn(at)?);
        }
    }
    Ok(took.map(middle))
}

/// Processor time that these processes had meanwhile.
fn used_in<T>(processes: &[Pid], work: impl FnOnce() -> Outcome<T>) -> Outcome<(Duration, T)> {
    let used = || processes.iter().map(|pid| cpu::used(*pid)).sum::<Duration>();
    let before = used();
    let done = work()?;
    Ok((used().saturating_sub(before), done))
}

/// A program that computes when it is told to. It ends when nobody tells it any more.
struct Computing {
    processes: Vec<Pid>,
    told: UnixStream,
    running: Running,
}

impl Computing {
    fn start(workshop: &Workshop, side: Side) -> Outcome<Self> {
        let (told, theirs) = UnixStream::pair().tried("make a connection")?;
        let (input, output) = (theirs.try_clone().tried("copy a connection")?, theirs);
        let argv = vec![workshop.executable("turns").into(), STEPS.into()];
        let launch = Launch { workshop, user: User::Own, side, argv };
        let streams =
            Streams { input: OwnedFd::from(input).into(), output: OwnedFd::from(output).into(), errors: Stdio::null() };
        let mut running = on_processor(web::SERVERS, || launch.start(streams))?;
        running.first_commit()?;
        let mut new = Self { processes: Vec::new(), told, running };
        new.turn()?;
        new.processes = new.running.processes()?;
        Ok(new)
    }

    /// Milliseconds.
    fn turn(&mut self) -> Outcome<f64> {
        let (used, ()) = used_in(&self.processes, || {
            self.told.write_all(b"x").tried("tell a program to work")?;
            self.told.read_exact(&mut [0]).tried("wait for a program")
        })?;
        Ok(used.as_secs_f64() * 1e3)
    }
}

struct Serving<'a> {
    server: web::Server,
    processes: Vec<Pid>,
    page: &'a [u8],
}

impl<'a> Serving<'a> {
    fn start(site: &'a Site, workshop: &Workshop, side: Side) -> Outcome<Self> {
        let mut server = site.serve(workshop, side, &[])?;
        let processes = server.running.processes()?;
        Ok(Self { server, processes, page: &site.pages[0] })
    }

    /// Microseconds for a request.
    fn turn(&mut self, time: Duration) -> Outcome<f64> {
        let load = Load { path: "/p0.html", body: self.page, clients: CLIENTS, pause: Duration::ZERO, time };
        let (used, seen) =
            used_in(&self.processes, || on_processor(CLIENTS_PROCESSOR, || clients::ask(self.server.port, &load)))?;
        match seen.requests {
            0 => Err(Failure::Unreadable("lighttpd".into(), "no request was served".into())),
            count => Ok(used.as_secs_f64() * 1e6 / count as f64),
        }
    }
}
