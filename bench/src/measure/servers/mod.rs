//! Servers of several processes with clients that stay connected: throughput, processor time, and what a kill each second does to both.
//! The server has one processor, its clients the other.

pub mod clients;
mod site;
mod tree;

use crate::failure::{Failure, Outcome, Tried};
use crate::launch::{Launch, Side, Streams};
use crate::measurement::{Collected, Measurement};
use crate::port;
use crate::processors::on_processor;
use crate::promise::{Promise, Relation, Unit};
use crate::running::Running;
use crate::user::User;
use crate::workshop::Workshop;
use clients::{Load, Seen};
use rustix::process::{kill_process, Signal};
use site::{Kind, Site, BODY, PATH};
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;
use tree::Tree;

/// A server under load.
pub struct Servers {
    kind: Kind,
}

const PROTECTED: Side = Side::Protected(&["--tree"]);
const CLIENTS: usize = 10;
const SERVER_PROCESSOR: usize = 0;
const CLIENT_PROCESSOR: usize = 1;
/// Before anything is measured: the first answers of a new process take longer, natively, too.
const WARM_UP: Duration = Duration::from_secs(1);
const TIME: Duration = Duration::from_secs(4);
/// With a kill in each second.
const KILLS_TIME: Duration = Duration::from_secs(10);
/// Of clients that show how long one waits: as many as a processor has no time for wait for each other, also natively.
const PAUSE: Duration = Duration::from_millis(20);
const BETWEEN_KILLS: Duration = Duration::from_secs(1);

/// What one run showed, for a request each.
struct Figures {
    /// Milliseconds that a thousand take.
    thousand_ms: f64,
    processor_us: f64,
}

impl Servers {
    pub fn nginx() -> Self {
        Self { kind: Kind::Nginx }
    }

    pub fn apache() -> Self {
        Self { kind: Kind::Apache }
    }

    fn id(&self, what: &str) -> String {
        format!("{}{what}", self.kind.name())
    }

    fn start(&self, site: &Site, workshop: &Workshop, side: Side) -> Outcome<Server> {
        let port = port::free()?;
        let argv = site.command(self.kind, port)?;
        let launch = Launch { workshop, user: User::Own, side, argv };
        let streams = Streams { input: Stdio::null(), output: Stdio::null(), errors: Stdio::null() };
        let running = on_processor(SERVER_PROCESSOR, || {
            launch.start_with(streams, |command| {
                // What signals its whole group as it ends signals nobody else.
                command.process_group(0);
            })
        })?;
        let mut server = Server { tree: Tree::of(&running), running, port, has_ended: false };
        port::await_server(port, self.kind.program())?;
        if side != Side::Native {
            server.running.session()?;
        }
        server.tree.await_programs(self.kind.processes(), side)?;
        server.load(WARM_UP, Duration::ZERO)?;
        Ok(server)
    }

    fn run(&self, site: &Site, workshop: &Workshop, side: Side, collected: &mut Collected) -> Outcome<Figures> {
        let server = self.start(site, workshop, side)?;
        let before = server.tree.processor_time();
        let seen = server.load(TIME, Duration::ZERO)?;
        let used = server.tree.processor_time() - before;
        collected.conditions(&server.running.conditions()?);
        server.end()?;
        let processor_us = used.as_secs_f64() * 1e6 / seen.requests as f64;
        Ok(Figures { thousand_ms: thousand_ms(&seen), processor_us })
    }

    fn run_under_kills(&self, site: &Site, workshop: &Workshop, pause: Duration, seed: u64) -> Outcome<Seen> {
        let server = self.start(site, workshop, PROTECTED)?;
        let is_over = AtomicBool::new(false);
        let (tree, over) = (&server.tree, &is_over);
        let (seen, kills) = thread::scope(|scope| {
            let killer = scope.spawn(move || tree.kill_each(BETWEEN_KILLS, seed, over));
            let seen = server.load(KILLS_TIME, pause);
            is_over.store(true, Relaxed);
            (seen, killer.join())
        });
        let (seen, kills) = (seen?, kills.unwrap_or(0));
        server.end()?;
        match kills {
            0 => Err(Failure::NotHere("nothing was killed".into())),
            _ => Ok(seen),
        }
    }
}

fn thousand_ms(seen: &Seen) -> f64 {
    seen.took.as_secs_f64() * 1e6 / seen.requests.max(1) as f64
}

/// One that runs.
struct Server {
    running: Running,
    tree: Tree,
    port: u16,
    has_ended: bool,
}

impl Server {
    fn load(&self, time: Duration, pause: Duration) -> Outcome<Seen> {
        let (port, load) = (self.port, Load { path: PATH, body: BODY, clients: CLIENTS, pause, time });
        thread::scope(|scope| {
            let load = scope.spawn(move || on_processor(CLIENT_PROCESSOR, || clients::ask(port, &load)));
            load.join().unwrap_or_else(|_| Err(Failure::NotHere("the clients have failed".into())))
        })
    }

    /// As an administrator would.
    fn end(mut self) -> Outcome<()> {
        kill_process(self.running.outer_pid(), Signal::TERM).tried("end the server")?;
        self.running.wait()?;
        self.has_ended = true;
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if !self.has_ended {
            self.tree.end();
        }
    }
}

impl Measurement for Servers {
    fn name(&self) -> String {
        self.kind.name().into()
    }

    fn promises(&self) -> Vec<Promise> {
        let name = self.kind.name();
        let promise = |what: &str, text: String, unit, relation, limit| Promise {
            id: self.id(what),
            what: text,
            unit,
            relation,
            limit,
        };
        let workers = self.kind.processes() - 1;
        vec![
            promise(
                "",
                format!("{name}, {workers} workers, {CLIENTS} clients, a thousand requests, more than native"),
                Unit::Percent,
                Relation::Overhead,
                25.0,
            ),
            promise(
                "-processor",
                format!("processor time of a request to {name}, more than native"),
                Unit::Percent,
                Relation::Overhead,
                25.0,
            ),
            promise(
                "-kills",
                format!("{name} with a kill each second, a thousand requests, more than without"),
                Unit::Percent,
                Relation::Overhead,
                11.1,
            ),
            promise(
                "-gap",
                format!(
                    "longest that a client of {name} waits for one of 50 answers in a second, with a kill each second"
                ),
                Unit::Milliseconds,
                Relation::Whole,
                20.0,
            ),
        ]
    }

    fn rounds(&self) -> usize {
        5
    }

    fn round(&mut self, number: usize, workshop: &Workshop, collected: &mut Collected) -> Outcome<()> {
        if !std::path::Path::new(self.kind.program()).exists() {
            return Err(Failure::NotHere(format!("{} is not installed; run `make install-deps`", self.kind.program())));
        }
        let site = Site::make()?;
        let first = if number % 2 != 0 { Some(self.run(&site, workshop, PROTECTED, collected)?) } else { None };
        let native = self.run(&site, workshop, Side::Native, collected)?;
        let ours = first.map_or_else(|| self.run(&site, workshop, PROTECTED, collected), Ok)?;
        let killed = self.run_under_kills(&site, workshop, Duration::ZERO, number as u64)?;
        let calm = self.run_under_kills(&site, workshop, PAUSE, number as u64)?;
        collected.add(&self.id(""), Some(native.thousand_ms), ours.thousand_ms);
        collected.add(&self.id("-processor"), Some(native.processor_us), ours.processor_us);
        collected.add(&self.id("-kills"), Some(ours.thousand_ms), thousand_ms(&killed));
        collected.add(&self.id("-gap"), None, calm.longest.as_secs_f64() * 1e3);
        Ok(())
    }
}
