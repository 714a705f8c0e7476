//! Requests a second of the web server on six components, by stubs that recover, written by hand or by glue, and by such that do not, with a crash now and then
//! in one component after the other, beside Apache and nginx where they are installed: SuperGlue's Figure 7.

mod crashes;
mod kept;
mod load;
mod measuring;
mod plot;
mod results;
mod servers;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{value_parser, Parser, ValueEnum};

use crashes::Crash;
use kept::{Conditions, Kept};
use measuring::Measuring;
use results::{measured, tables, Measured, Run};
use servers::Server;

/// Measures the web server on six components beside others, as in SuperGlue's Figure 7.
///
/// All servers are measured once in each run, a slice of the time each, in turn. Tables go to standard output. Exit status: 0 measured, 1
/// something failed, among it any request; 2 wrong usage.
#[derive(Parser)]
#[command(name = "glue-web-bench", version)]
struct Options {
    /// How often each server is measured, those times included that are kept already.
    #[arg(long, default_value = "3", value_parser = value_parser!(u32).range(1..))]
    runs: u32,
    /// For how long each time.
    #[arg(long, default_value = "60s", value_parser = humantime::parse_duration)]
    length: Duration,
    /// Of which so much at once, in turn with the other servers, for a machine is now faster, now slower.
    #[arg(long, default_value = "10s", value_parser = slice)]
    slice: Duration,
    /// Time under load between crashes; the first is after half of it.
    #[arg(long, default_value = "10s", value_parser = humantime::parse_duration)]
    crash_every: Duration,
    /// Clients that ask at once.
    #[arg(long, default_value = "10", value_parser = value_parser!(u32).range(1..=200))]
    clients: u32,
    /// On connections that stay; else each request has one of its own, as ab's have.
    #[arg(long)]
    keep_alive: bool,
    /// Bytes of the page.
    #[arg(long, default_value = "1024", value_parser = value_parser!(u32).range(0..=30_000_000))]
    bytes: u32,
    /// Threads or processes that a server has.
    #[arg(long, default_value = "4", value_parser = value_parser!(u32).range(1..=32))]
    workers: u32,
    /// Measures only these, in this order; else all that are installed.
    #[arg(long, value_name = "SERVER", value_delimiter = ',')]
    servers: Vec<Server>,
    /// Keeps each run in this file as soon as it is made. What is there counts already, so that what was interrupted goes on.
    #[arg(long, value_name = "FILE")]
    keep: Option<PathBuf>,
    /// Writes everything to this file, as JSON.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Draws requests over time to this file.
    #[arg(long)]
    svg: Option<PathBuf>,
}

fn slice(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(slice) if slice.is_zero() => Err("nothing can be measured in no time".into()),
        slice => slice.map_err(|error| error.to_string()),
    }
}

fn main() -> ExitCode {
    match measure(&Options::parse()) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(failed) => {
            eprintln!("glue-web-bench: {failed} requests failed");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("glue-web-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

/// How many requests failed.
fn measure(options: &Options) -> Result<u64, Box<dyn std::error::Error>> {
    let page: Vec<u8> = (0..options.bytes).map(|at| b'a' + (at % 26) as u8).collect();
    let mut wanted = options.servers.clone();
    if wanted.is_empty() {
        wanted = Server::value_variants().iter().copied().filter(|server| server.installed()).collect();
    }
    if let Some(server) = wanted.iter().find(|server| !server.installed()) {
        return Err(format!("{} is not installed; leave it out of --servers", server.name()).into());
    }
    let (mut kept, mut runs) = match &options.keep {
        Some(path) => Kept::open(path, &options.conditions()).map(|(kept, runs)| (Some(kept), runs))?,
        None => (None, Vec::new()),
    };
    for number in 1..=options.runs {
        let missing = |server: &Server| runs.iter().filter(|run| run.server == *server).count() < number as usize;
        let these: Vec<Server> = wanted.iter().copied().filter(missing).collect();
        let made = loop {
            if let Some(made) = one_run(&these, &page, options)? {
                break made;
            }
            // A component that has no processor for two seconds is taken to hang, and base does not get over that.
            eprintln!("run {number} of {}: again, for base lost a component", options.runs);
        };
        for run in made {
            eprintln!("run {number} of {}: {}: {} requests", options.runs, run.server.name(), run.requests);
            if let Some(kept) = &mut kept {
                kept.add(&run)?;
            }
            runs.push(run);
        }
    }
    let all: Vec<Measured> = wanted.iter().map(|server| measured(*server, &runs, options.length)).collect();
    print!("{}", tables(&all));
    if let Some(path) = &options.json {
        std::fs::write(path, serde_json::to_vec_pretty(&all)?)?;
    }
    if let Some(path) = &options.svg {
        std::fs::write(path, plot::figure(&all, &options.planned(), options.length.as_secs_f64())?)?;
    }
    std::io::stdout().flush()?;
    Ok(all.iter().map(|measured| measured.failed).sum())
}

/// All of them under load once, in turn, a slice of the time each; nothing: base lost a component meanwhile.
fn one_run(servers: &[Server], page: &[u8], options: &Options) -> std::io::Result<Option<Vec<Run>>> {
    let start = |server: &Server| Measuring::start(*server, page, options);
    let mut all = servers.iter().map(start).collect::<std::io::Result<Vec<_>>>()?;
    let mut from = Duration::ZERO;
    while from < options.length {
        let slice = options.slice.min(options.length - from);
        all.iter_mut().for_each(|server| server.go_on(from, slice, options));
        from += slice;
    }
    Ok(all.into_iter().map(|server| server.end(options)).collect())
}

impl Options {
    /// The crashes that are to be.
    fn planned(&self) -> Vec<Crash> {
        let moments = crashes::moments(self.crash_every, self.length);
        let names = crashes::COMPONENTS.iter().copied().cycle();
        moments.iter().zip(names).map(|(at, component)| Crash { component, at: at.as_nanos() as u64 }).collect()
    }

    fn conditions(&self) -> Conditions {
        Conditions {
            length_ms: self.length.as_millis() as u64,
            slice_ms: self.slice.as_millis() as u64,
            crash_every_ms: self.crash_every.as_millis() as u64,
            clients: self.clients,
            keep_alive: self.keep_alive,
            bytes: self.bytes,
            workers: self.workers,
        }
    }
}
