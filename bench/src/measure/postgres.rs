//! PostgreSQL and its own benchmark: four clients that only read, or that change three tables in each transaction.

use crate::failure::{Failure, Outcome, Tried};
use crate::launch::{Launch, Side, Streams};
use crate::measurement::{Collected, Measurement};
use crate::port;
use crate::promise::{Promise, Relation, Unit};
use crate::running::Running;
use crate::user::{we_are_root, User};
use crate::workshop::Workshop;
use rustix::process::{kill_process, Signal};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

pub struct Postgres;

const BINARIES: &str = "/usr/lib/postgresql/15/bin";
/// Root may not run any of it, and who makes a database must have a name.
const NOBODY: u32 = 65534;
const CLIENTS: &str = "4";
const SECONDS: &str = "4";
const PATIENCE: Duration = Duration::from_secs(30);

/// A promise, what its clients do, and the overhead that leaves 70 % of the native throughput.
const LOADS: [(&str, &str, &[&str]); 2] = [
    ("postgres-select", "PostgreSQL, 4 clients, a thousand transactions that only read, more than native", &["-S"]),
    ("postgres-tpcb", "PostgreSQL, 4 clients, a thousand transactions like those of TPC-B, more than native", &[]),
];
const LIMIT: f64 = 42.9;

/// A database in a folder of the ordinary user's.
struct Cluster {
    folder: PathBuf,
}

impl Cluster {
    /// Makes an empty one.
    fn make(workshop: &Workshop, number: usize) -> Outcome<Self> {
        let folder =
            workshop.work(User::Ordinary).parent().unwrap_or(Path::new("/")).join(format!("postgres-{number}"));
        std::fs::create_dir(&folder).tried_on(&folder)?;
        let mut initdb = Command::new(format!("{BINARIES}/initdb"));
        initdb.args(["-A", "trust", "-U", "it", "-N", "-D"]).arg(&folder).current_dir("/");
        if we_are_root() {
            chown(&folder, Some(NOBODY), Some(NOBODY)).tried_on(&folder)?;
            initdb.uid(NOBODY).gid(NOBODY);
        }
        succeed(&mut initdb)?;
        if let Some(id) = User::Ordinary.other_id() {
            succeed(Command::new("chown").arg("-R").arg(format!("{id}:{id}")).arg(&folder))?;
        }
        Ok(Self { folder })
    }

    fn start(&self, workshop: &Workshop, side: Side) -> Outcome<Server> {
        let port = port::free()?;
        let mut argv = vec![format!("{BINARIES}/postgres").into(), "-D".into(), self.folder.clone().into_os_string()];
        for setting in ["unix_socket_directories=".into(), "shared_buffers=16MB".into(), format!("port={port}")] {
            argv.extend(["-c".into(), setting.into()]);
        }
        let launch = Launch { workshop, user: User::Ordinary, side, argv };
        let streams = Streams { input: Stdio::null(), output: Stdio::null(), errors: Stdio::null() };
        let mut running = launch.start(streams)?;
        port::await_server(port, "postgres")?;
        if side != Side::Native {
            running.session()?;
        }
        let server = Server { running, port: port.to_string() };
        // Until then it recovers, and refuses.
        let began = Instant::now();
        while server.ask("psql", &["-c", "select 1"]).is_err() {
            if began.elapsed() > PATIENCE {
                return Err(Failure::TooLong("the start of postgres".into(), PATIENCE.as_secs()));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }

    /// Milliseconds for a thousand transactions, for each load. Before, natively, its tables are filled.
    fn run(&self, workshop: &Workshop, side: Side, collected: &mut Collected) -> Outcome<Vec<f64>> {
        let filled = self.start(workshop, Side::Native)?;
        filled.ask("pgbench", &["-i", "-q"])?;
        filled.end()?;
        let server = self.start(workshop, side)?;
        let loads: Outcome<Vec<f64>> = LOADS.iter().map(|(_, _, load)| server.put_load(load)).collect();
        collected.conditions(&server.running.conditions()?);
        server.end()?;
        loads
    }
}

/// One that runs.
struct Server {
    running: Running,
    port: String,
}

impl Server {
    /// Has a client ask it for something.
    fn ask(&self, client: &str, words: &[&str]) -> Outcome<String> {
        let mut client = Command::new(format!("{BINARIES}/{client}"));
        client.args(words).args(["-h", "127.0.0.1", "-p", &self.port, "-U", "it", "postgres"]);
        succeed(&mut client)
    }

    fn put_load(&self, load: &[&str]) -> Outcome<f64> {
        let text = self.ask("pgbench", &[load, &["-n", "-c", CLIENTS, "-T", SECONDS]].concat())?;
        // tps = 32708.882590 (without initial connection time)
        let rate = text.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse::<f64>().ok());
        match rate {
            Some(rate) if rate > 0.0 => Ok(1e6 / rate),
            _ => Err(Failure::Unreadable("pgbench".into(), text)),
        }
    }

    /// As an administrator would who does not wait for clients.
    fn end(mut self) -> Outcome<()> {
        kill_process(self.running.outer_pid(), Signal::INT).tried("end the server")?;
        self.running.wait().map(drop)
    }
}

/// What it says, if it succeeds.
fn succeed(command: &mut Command) -> Outcome<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().tried_on(&name)?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(Failure::Ended(name, output.status, format!(": {}", said.trim())))
        }
    }
}

impl Measurement for Postgres {
    fn name(&self) -> String {
        "PostgreSQL".into()
    }

    fn promises(&self) -> Vec<Promise> {
        let promise =
            |(id, what, _): &(&str, &str, &[&str])| Promise::new(id, what, Unit::Percent, Relation::Overhead, LIMIT);
        LOADS.iter().map(promise).collect()
    }

    fn rounds(&self) -> usize {
        3
    }

    fn round(&mut self, number: usize, workshop: &Workshop, collected: &mut Collected) -> Outcome<()> {
        if !Path::new(BINARIES).exists() {
            return Err(Failure::NotHere("postgresql-15 is not installed; `make install-deps` does that".into()));
        }
        let cluster = Cluster::make(workshop, number)?;
        let ours = |collected: &mut Collected| cluster.run(workshop, Side::Protected(&["--tree"]), collected);
        let first = if number % 2 != 0 { Some(ours(collected)?) } else { None };
        let native = cluster.run(workshop, Side::Native, collected)?;
        let protected = first.map_or_else(|| ours(collected), Ok)?;
        for ((id, ..), (native, protected)) in LOADS.iter().zip(native.into_iter().zip(protected)) {
            collected.add(id, Some(native), protected);
        }
        Ok(())
    }
}
