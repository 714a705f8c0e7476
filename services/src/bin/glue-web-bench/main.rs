//! Requests a second of the web server on six components, by stubs that recover, written by hand or by glue, and by such that do not, with a crash now and then
//! in one component after the other, beside Apache and nginx where they are installed: SuperGlue's Figure 7.

mod crashes;
mod load;
mod plot;
mod results;
mod servers;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{value_parser, Parser};

use crashes::Crash;
use load::Site;
use results::{measured, tables, Measured, Run};
use servers::Server;

/// Measures the web server on six components beside others, as in SuperGlue's Figure 7.
///
/// All servers are measured once in each run, one after the other. Tables go to standard output. Exit status: 0 measured, 1
/// something failed, among it any request; 2 wrong usage.
#[derive(Parser)]
#[command(name = "glue-web-bench", version)]
struct Options {
    /// How often each server is measured.
    #[arg(long, default_value = "3", value_parser = value_parser!(u32).range(1..))]
    runs: u32,
    /// How long each time.
    #[arg(long, default_value = "60s", value_parser = humantime::parse_duration)]
    length: Duration,
    /// Time between crashes; the first is after half of it.
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
    /// No other servers.
    #[arg(long)]
    alone: bool,
    /// Writes everything to this file, as JSON.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Draws requests over time to this file.
    #[arg(long)]
    svg: Option<PathBuf>,
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
    let others = [Server::Apache, Server::Nginx];
    let wanted: Vec<Server> = Server::ALL
        .into_iter()
        .filter(|server| server.installed() && !(options.alone && others.contains(server)))
        .collect();
    let moments = crashes::moments(options.crash_every, options.length);
    let mut runs = Vec::new();
    for number in 1..=options.runs {
        for server in &wanted {
            let run = loop {
                let (run, whole) = one_run(*server, &page, &moments, options)?;
                if whole {
                    break run;
                }
                // A component that has no processor for two seconds is taken to hang, and base does not get over that.
                eprintln!("run {number} of {}: {}: again, for a component was replaced", options.runs, server.name());
            };
            eprintln!("run {number} of {}: {}: {} requests", options.runs, server.name(), run.load.done.len());
            if let Some(why) = &run.load.why {
                eprintln!("glue-web-bench: {} requests failed, one of the first {why}", run.load.failed);
            }
            runs.push(run);
        }
    }
    let names = crashes::COMPONENTS.iter().copied().cycle();
    let planned: Vec<Crash> =
        moments.iter().zip(names).map(|(at, component)| Crash { component, at: at.as_nanos() as u64 }).collect();
    let after = crashes::AFTER.min(options.crash_every);
    let all: Vec<Measured> =
        wanted.iter().map(|server| measured(*server, &runs, options.length, &planned, after)).collect();
    print!("{}", tables(&all));
    if let Some(path) = &options.json {
        std::fs::write(path, serde_json::to_vec_pretty(&all)?)?;
    }
    if let Some(path) = &options.svg {
        std::fs::write(path, plot::figure(&all, &planned, options.length.as_secs_f64())?)?;
    }
    std::io::stdout().flush()?;
    Ok(all.iter().map(|measured| measured.failed).sum())
}

/// A server under load once; false: it is base, and lost a component meanwhile.
fn one_run(server: Server, page: &[u8], moments: &[Duration], options: &Options) -> std::io::Result<(Run, bool)> {
    let running = servers::start(server, page, options.workers)?;
    let site = Site { address: running.address, page };
    let process = running.process();
    let before = crashes::instances(process);
    let (load, crashes) = std::thread::scope(|scope| {
        let killer = server.crashes().then(|| scope.spawn(move || crashes::run(process, moments)));
        let load = load::ask(&site, options.clients as usize, options.keep_alive, options.length);
        (load, killer.and_then(|killer| killer.join().ok()).unwrap_or_default())
    });
    let whole = server != Server::Base || crashes::instances(process) == before;
    Ok((Run { server, load, crashes }, whole))
}
