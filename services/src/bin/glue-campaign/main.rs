//! Injects faults into components under load, one after the other, and tells what became of them.
//! `glue-campaign [--faults N] [--seed N] [--single] [--json] [SERVICE …]`; `--single`: one bit in one register, not in eight.

mod chance;
mod inject;
mod load;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use outlast_glue_rt::{Handle, Spec, System};

use chance::Chance;

const SERVICES: [&str; 6] = ["event", "fs", "lock", "memory", "scheduler", "timer"];
/// Steps of the load after which a fault that was not seen is taken to be without effect, or to be recovered from.
const SETTLED: u64 = 100;
/// Without a step for so long it is stuck; a hang is to be found long before.
const STUCK: Duration = Duration::from_secs(15);

/// What became of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    NoEffect,
    Recovered,
    /// A call failed that must not.
    Error,
    /// A call gave what it must not.
    Wrong,
    ClientCrashed,
    Stuck,
}

const OUTCOMES: [(Outcome, &str); 6] = [
    (Outcome::NoEffect, "no effect"),
    (Outcome::Recovered, "recovered"),
    (Outcome::Error, "error"),
    (Outcome::Wrong, "wrong"),
    (Outcome::ClientCrashed, "client crashed"),
    (Outcome::Stuck, "stuck"),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [mode, service, seed] = arguments.as_slice() {
        if mode == "load" {
            return load::run(service, seed.parse().unwrap_or(1));
        }
    }
    let (mut faults, mut seed, mut single, mut json, mut services) = (500, 1, false, false, Vec::new());
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let number = |rest: &mut std::slice::Iter<String>| rest.next().and_then(|number| number.parse().ok());
        match argument.as_str() {
            "--faults" => faults = number(&mut rest).unwrap_or(faults),
            "--seed" => seed = number(&mut rest).unwrap_or(seed),
            "--single" => single = true,
            "--json" => json = true,
            name if SERVICES.contains(&name) => services.push(name),
            other => {
                eprintln!("glue-campaign: no service and no option: `{other}`; there are {}", SERVICES.join(", "));
                eprintln!("usage: glue-campaign [--faults N] [--seed N] [--single] [--json] [SERVICE …]");
                return ExitCode::from(2);
            }
        }
    }
    if services.is_empty() {
        services = SERVICES.to_vec();
    }
    let registers = if single { "one" } else { "each" };
    if !json {
        println!(
            "seed {seed}, {faults} faults a service: one bit in {registers} of eight registers of a thread that serves"
        );
    }
    for service in services {
        let counts = campaign(service, faults, seed, single);
        let count = |wanted: Outcome| counts.iter().filter(|outcome| **outcome == wanted).count();
        let activated = counts.len() - count(Outcome::NoEffect);
        let rate = 100.0 * count(Outcome::Recovered) as f64 / activated.max(1) as f64;
        match json {
            true => {
                let all: Vec<String> =
                    OUTCOMES.iter().map(|(outcome, name)| format!("\"{name}\": {}", count(*outcome))).collect();
                println!("{{\"service\": \"{service}\", \"injected\": {}, {}}}", counts.len(), all.join(", "));
            }
            false => {
                let all: Vec<String> =
                    OUTCOMES.iter().map(|(outcome, name)| format!("{} {name}", count(*outcome))).collect();
                println!(
                    "{service:<10} {} injected: {}; {rate:.1} % of activated ones recovered",
                    counts.len(),
                    all.join(", ")
                );
            }
        }
    }
    ExitCode::SUCCESS
}

/// A component under load.
struct Bench {
    _system: System,
    handle: Handle,
    client: Child,
    done: Arc<AtomicU64>,
    trouble: Arc<Mutex<Option<String>>>,
}

impl Bench {
    fn new(service: &str, seed: u64) -> Self {
        let own = std::env::current_exe().expect("this program");
        let mut system = System::new();
        let program = own.with_file_name("outlast-service");
        let spec = Spec { name: service.into(), program, arguments: vec![service.into()] };
        let handle = system.start(spec).expect("the component starts");
        let mut command = Command::new(own);
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
    fn watch(&mut self, deaths: u32) -> (Outcome, String) {
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
            if done >= from + SETTLED {
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

fn campaign(service: &str, faults: u64, seed: u64, single: bool) -> Vec<Outcome> {
    let mut chance = Chance::new(seed);
    let mut outcomes = Vec::new();
    let mut bench: Option<Bench> = None;
    while (outcomes.len() as u64) < faults {
        let number = outcomes.len();
        let fresh = bench.is_none();
        let at = bench.get_or_insert_with(|| Bench::new(service, seed + number as u64));
        if fresh {
            let deaths = at.handle.deaths().0;
            let (outcome, why) = at.watch(deaths);
            assert_eq!(outcome, Outcome::NoEffect, "{service} does not even work unharmed: {why}");
        }
        std::thread::sleep(Duration::from_micros(chance.below(2_000)));
        let deaths = at.handle.deaths().0;
        let instance = at.handle.instance();
        if instance == 0 || !inject::inject(instance, single, &mut chance) {
            continue;
        }
        let (outcome, why) = at.watch(deaths);
        if !matches!(outcome, Outcome::NoEffect | Outcome::Recovered) {
            eprintln!("{service}: fault {number}: {outcome:?}: {why}");
            // Who knows what is left of it.
            bench = None;
        }
        outcomes.push(outcome);
    }
    outcomes
}
