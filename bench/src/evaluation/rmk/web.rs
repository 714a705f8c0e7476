//! The HTTP server that stands for the paper's: lighttpd, one process with one thread, and the site that it serves.

use super::results::{Served, Work};
use crate::cpu;
use crate::failure::{Failure, Outcome, Tried};
use crate::launch::{Launch, Side, Streams};
use crate::port;
use crate::processors::on_processor;
use crate::running::Running;
use crate::user::User;
use crate::workshop::Workshop;
use rustix::process::{kill_process, Signal};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const SERVER: &str = "/usr/sbin/lighttpd";
const CLIENT: &str = "/usr/bin/wrk";
const ASKING: &str = include_str!("../../../programs/pages.lua");
/// Small pages of the site.
pub const PAGES: usize = 100;
/// The server has one processor and its clients the other.
pub const SERVERS: usize = 0;
const CLIENTS: usize = 1;

/// Pages of a seed, and where they lie.
pub struct Site {
    root: PathBuf,
    pub pages: Vec<Vec<u8>>,
}

/// A server that runs.
pub struct Server {
    pub running: Running,
    pub port: u16,
}

/// That a program is there.
pub fn installed(program: &str) -> Outcome<()> {
    match Path::new(program).exists() {
        true => Ok(()),
        false => Err(Failure::NotHere(format!("{program} is not installed; run `make install-deps`"))),
    }
}

impl Site {
    pub fn make(workshop: &Workshop, seed: u64) -> Outcome<Self> {
        installed(SERVER)?;
        let root = workshop.work(User::Own).join("site");
        let mut random = fastrand::Rng::with_seed(seed);
        let mut page = || -> Vec<u8> {
            let size = random.usize(500..16_000);
            std::iter::repeat_with(|| b' ' + random.u8(..90)).take(size).collect()
        };
        let pages: Vec<Vec<u8>> = (0..PAGES).map(|_| page()).collect();
        fs::create_dir_all(&root).tried_on(&root)?;
        for (number, page) in pages.iter().enumerate() {
            let path = root.join(format!("p{number}.html"));
            fs::write(&path, page).tried_on(path)?;
        }
        let path = root.join("huge");
        fs::write(&path, pages.concat().repeat(3)).tried_on(path)?;
        workshop.put(User::Own, "pages.lua", ASKING.as_bytes())?;
        Ok(Self { root, pages })
    }

    /// Starts a server, which is there on return.
    pub fn serve(&self, workshop: &Workshop, side: Side, env: &[(&str, OsString)]) -> Outcome<Server> {
        let port = port::free()?;
        let mut server = self.start(workshop, side, env, port)?;
        port::await_server(port, "lighttpd")?;
        if side != Side::Native {
            server.running.session()?;
        }
        Ok(server)
    }

    /// Starts one again, by itself, where another one was.
    pub fn serve_at(&self, workshop: &Workshop, port: u16) -> Outcome<Server> {
        self.start(workshop, Side::Native, &[], port)
    }

    fn start(&self, workshop: &Workshop, side: Side, env: &[(&str, OsString)], port: u16) -> Outcome<Server> {
        let text = format!(
            "server.document-root = \"{}\"\nserver.bind = \"127.0.0.1\"\nserver.port = {port}\n\
             server.errorlog = \"/dev/null\"\nserver.max-keep-alive-requests = 65535\n",
            self.root.display()
        );
        let configuration = workshop.put(User::Own, "web.conf", text.as_bytes())?;
        let argv = vec![SERVER.into(), "-D".into(), "-f".into(), configuration.into()];
        let launch = Launch { workshop, user: User::Own, side, argv };
        let streams = Streams { input: Stdio::null(), output: Stdio::null(), errors: Stdio::null() };
        let running = on_processor(SERVERS, || {
            launch.start_with(streams, |command| {
                command.envs(env.iter().cloned());
            })
        })?;
        Ok(Server { running, port })
    }
}

impl Server {
    /// Has so many clients ask for pages, each for the next one as soon as it has one.
    pub fn load(&mut self, workshop: &Workshop, clients: u32, time: Duration, seed: u64) -> Outcome<(Served, Work)> {
        installed(CLIENT)?;
        let all = self.running.processes()?;
        let used = || all.iter().map(|pid| cpu::used(*pid)).sum::<Duration>();
        let (before, began) = (used(), Instant::now());
        let script = workshop.work(User::Own).join("pages.lua");
        let output = on_processor(CLIENTS, || {
            Command::new(CLIENT)
                .args([
                    "-t1",
                    "--timeout",
                    "10s",
                    &format!("-c{clients}"),
                    &format!("-d{}s", time.as_secs().max(1)),
                    "-s",
                ])
                .arg(script)
                .args([&format!("http://127.0.0.1:{}/", self.port), "--", &seed.to_string()])
                .output()
                .tried_on(CLIENT)
        })?;
        let (processor, elapsed) = (used() - before, began.elapsed());
        let text = String::from_utf8_lossy(&output.stdout);
        let figures = text.lines().find_map(|line| line.strip_prefix("figures "));
        let numbers: Vec<f64> = figures.unwrap_or("").split(' ').filter_map(|word| word.parse().ok()).collect();
        let &[requests, micros, bytes, mean_us, median_us, p99_us, errors] = &numbers[..] else {
            return Err(Failure::Unreadable(CLIENT.into(), text.into_owned()));
        };
        if requests < 1.0 {
            return Err(Failure::Unreadable(CLIENT.into(), "no request was served".into()));
        }
        let processor_us = processor.as_secs_f64() * 1e6 / requests;
        let work = Work {
            elapsed_ms: elapsed.as_secs_f64() * 1e3,
            processor_ms: processor.as_secs_f64() * 1e3,
            units: requests,
        };
        let seconds = micros / 1e6;
        Ok((Served { requests, seconds, bytes, mean_us, median_us, p99_us, errors, processor_us }, work))
    }

    /// Ends it as a person would, and waits for that. The program's own process may be dead just now, and gets nothing then.
    pub fn end(mut self) -> Outcome<()> {
        kill_process(self.running.outer_pid(), Signal::INT).tried("end the server")?;
        self.running.wait().map(drop)
    }
}
