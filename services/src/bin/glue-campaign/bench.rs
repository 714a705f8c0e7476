//! A component under load, and what is seen of it from outside.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use outlast_glue_rt::{Handle, Spec, System};

use crate::load;

/// Steps of the load after which a fault that was not seen is taken to be without effect, or to be recovered from.
const SETTLED: u64 = 100;
/// Without a step for so long it is stuck; a hang is to be found long before.
const STUCK: Duration = Duration::from_secs(15);

/// What became of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    NoEffect,
    Recovered,
    /// A call failed that must not.
    Error,
    /// A call gave what it must not.
    Wrong,
    ClientCrashed,
    Stuck,
}

pub const OUTCOMES: [(Outcome, &str); 6] = [
    (Outcome::NoEffect, "no effect"),
    (Outcome::Recovered, "recovered"),
    (Outcome::Error, "error"),
    (Outcome::Wrong, "wrong"),
    (Outcome::ClientCrashed, "client crashed"),
    (Outcome::Stuck, "stuck"),
];

/// A component under load.
pub struct Bench {
    _system: System,
    pub handle: Handle,
    client: Child,
    done: Arc<AtomicU64>,
    trouble: Arc<Mutex<Option<String>>>,
}

impl Bench {
    pub fn new(service: &str, seed: u64) -> Self {
        let mut system = System::new();
        let handle = start(&mut system, service);
        let mut command = Command::new(own());
        command.args(["load", service, &seed.to_string()]).stdout(Stdio::piped());
        for client in 0..load::CLIENTS {
            handle.grant().expect("a channel").pass(&mut command, &format!("{service}{client}"));
        }
        let mut client = command.spawn().expect("the load starts");
        let output = BufReader::new(client.stdout.take().expect("piped"));
        let (done, trouble) = (Arc::new(AtomicU64::new(0)), Arc::new(Mutex::new(None)));
        let (counter, noted) = (done.clone(), trouble.clone());
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                match line.parse() {
                    Ok(count) => counter.store(count, Ordering::SeqCst),
                    Err(_) => *noted.lock().unwrap_or_else(PoisonError::into_inner) = Some(line),
                }
            }
        });
        Self { _system: system, handle, client, done, trouble }
    }

    fn done(&self) -> u64 {
        self.done.load(Ordering::SeqCst)
    }

    /// Watches until so many more steps were done, counted from the last death on.
    /// `struck`: the process that was; 0: none.
    pub fn watch(&mut self, deaths: u32, struck: u32) -> (Outcome, String) {
        let mut seen = deaths;
        let (mut from, mut last, mut progress) = (self.done(), self.done(), Instant::now());
        loop {
            if let Some(status) = self.client.try_wait().expect("our child") {
                // The reader may still be at its last line.
                std::thread::sleep(Duration::from_millis(50));
                let trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner).take();
                return match trouble {
                    Some(trouble) if trouble.starts_with("wrong") => (Outcome::Wrong, trouble),
                    Some(trouble) => (Outcome::Error, trouble),
                    None => (Outcome::ClientCrashed, status.to_string()),
                };
            }
            let (deaths_now, done) = (self.handle.deaths().0, self.done());
            if deaths_now != seen {
                (seen, from) = (deaths_now, done);
            }
            if done != last {
                (last, progress) = (done, Instant::now());
            }
            // Steps may be told late: one whose end is not noticed yet has not gone on.
            if done >= from + SETTLED && (seen != deaths || struck == 0 || !ended(struck)) {
                let outcome = if seen == deaths { Outcome::NoEffect } else { Outcome::Recovered };
                return (outcome, String::new());
            }
            if progress.elapsed() > STUCK {
                return (Outcome::Stuck, format!("{} deaths since the fault", seen - deaths));
            }
            std::thread::sleep(Duration::from_micros(500));
        }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = self.client.kill();
        let _ = self.client.wait();
    }
}

/// Whether it is dead, waited for or not.
fn ended(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['Z', 'X']))
}

fn own() -> std::path::PathBuf {
    std::env::current_exe().expect("this program")
}

/// The component that is called as its service is.
pub fn start(system: &mut System, service: &str) -> Handle {
    let program = own().with_file_name("outlast-service");
    let spec = Spec { name: service.into(), program, arguments: vec![service.into()] };
    system.start(spec).expect("the component starts")
}
