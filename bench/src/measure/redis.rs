//! redis-server and its own benchmark: ten clients, each waiting for one answer, or for sixteen.

use crate::failure::{Failure, Outcome, Tried};
use crate::launch::{Launch, Side, Streams};
use crate::measurement::{Collected, Measurement};
use crate::port;
use crate::promise::{Promise, Relation, Unit};
use crate::user::User;
use crate::workshop::Workshop;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Stdio};

pub struct Redis;

/// Where Debian's package of tools has the server: it becomes one by the name under which it is called.
const SERVER: &str = "/usr/bin/redis-check-rdb";
const CLIENT: &str = "/usr/bin/redis-benchmark";

/// A promise, requests at once, requests in all, and the overhead that leaves 60 % and 85 % of the native throughput.
const LOADS: [(&str, &str, &str, &str, f64); 2] = [
    ("redis", "redis-server, 10 clients, a thousand SETs, more than native", "1", "60000", 66.7),
    (
        "redis-pipelined",
        "redis-server, 10 clients, 16 SETs at once, a thousand SETs, more than native",
        "16",
        "400000",
        17.6,
    ),
];

impl Redis {
    /// Milliseconds for a thousand requests, for each load.
    fn run(workshop: &Workshop, side: Side, collected: &mut Collected) -> Outcome<Vec<f64>> {
        let argv: Vec<_> = [server(workshop)?.into_os_string()]
            .into_iter()
            .chain(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--port"].map(Into::into))
            .collect();
        let port = port::free()?;
        let argv = [argv, vec![port.to_string().into()]].concat();
        let launch = Launch { workshop, user: User::Own, side, argv };
        let mut server =
            launch.start(Streams { input: Stdio::null(), output: Stdio::null(), errors: Stdio::null() })?;
        port::await_server(port, "redis-server")?;
        if side != Side::Native {
            server.session()?;
        }
        let loads: Outcome<Vec<f64>> =
            LOADS.iter().map(|(_, _, at_once, count, _)| put_load(port, at_once, count)).collect();
        collected.conditions(&server.conditions()?);
        loads
    }
}

fn server(workshop: &Workshop) -> Outcome<PathBuf> {
    let name = workshop.work(User::Own).join("redis-server");
    match name.exists() {
        true => Ok(name),
        false => symlink(SERVER, &name).tried_on(&name).map(|()| name),
    }
}

fn put_load(port: u16, at_once: &str, count: &str) -> Outcome<f64> {
    let port = port.to_string();
    let args = ["-p", &port, "-c", "10", "-P", at_once, "-n", count, "-t", "set", "--csv"];
    let output = Command::new(CLIENT).args(args).output().tried_on(CLIENT)?;
    let text = String::from_utf8_lossy(&output.stdout);
    // "SET","117508.81",…: requests in a second.
    let rate = text.lines().find_map(|line| line.strip_prefix("\"SET\",\"")?.split('"').next()?.parse::<f64>().ok());
    match rate {
        Some(rate) if rate > 0.0 => Ok(1e6 / rate),
        _ => Err(Failure::Unreadable(CLIENT.into(), text.into_owned())),
    }
}

impl Measurement for Redis {
    fn name(&self) -> String {
        "redis-server".into()
    }

    fn promises(&self) -> Vec<Promise> {
        let promise = |(id, what, _, _, limit): &(&str, &str, &str, &str, f64)| Promise {
            id: (*id).into(),
            what: (*what).into(),
            unit: Unit::Percent,
            relation: Relation::Overhead,
            limit: *limit,
        };
        LOADS.iter().map(promise).collect()
    }

    fn rounds(&self) -> usize {
        5
    }

    fn round(&mut self, number: usize, workshop: &Workshop, collected: &mut Collected) -> Outcome<()> {
        if !std::path::Path::new(SERVER).exists() {
            return Err(Failure::NotHere("redis-tools is not installed; `make install-deps` does that".into()));
        }
        let ours = |collected: &mut Collected| Self::run(workshop, Side::Protected(&[]), collected);
        let first = if number % 2 != 0 { Some(ours(collected)?) } else { None };
        let native = Self::run(workshop, Side::Native, collected)?;
        let protected = first.map_or_else(|| ours(collected), Ok)?;
        for ((id, ..), (native, protected)) in LOADS.iter().zip(native.into_iter().zip(protected)) {
            collected.add(id, Some(native), protected);
        }
        Ok(())
    }
}
