//! Injects faults into components under load, one after the other, and tells what became of them.

mod bench;
mod chance;
mod load;
mod outcomes;
mod steady;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{value_parser, Parser, Subcommand};
use outlast_inject::harm::Faults;

use bench::{Bench, Outcome};
use chance::Chance;
use outcomes::{Fault, Outcomes};

const SERVICES: [&str; 6] = ["event", "fs", "lock", "memory", "scheduler", "timer"];

/// A fault as SuperGlue's authors inject it: one random bit in each of eight registers of a thread inside a component. Most end the
/// component at once.
const EIGHT: &str = "[[fault]]
kind = 'register'
each = true
registers = ['rsp', 'rbp', 'rax', 'rbx', 'rcx', 'rdx', 'rsi', 'rdi']";

/// In one register only, more of them lead it astray first.
const SINGLE: &str = "[[fault]]
kind = 'register'
registers = ['rsp', 'rbp', 'rax', 'rbx', 'rcx', 'rdx', 'rsi', 'rdi']";

/// Injects faults into components under load, one after the other, and tells what became of them.
///
/// A fault is activated if the component died, was found to hang, or a client noticed anything; recovered from if its clients then
/// went on as if nothing had been. What components say as they die goes to standard error.
///
/// Exit status: 0 done, whatever became of the faults; 1 a service does not even work unharmed; 2 wrong usage.
#[derive(Parser)]
#[command(name = "glue-campaign", version, args_conflicts_with_subcommands = true)]
struct Options {
    #[command(subcommand)]
    part: Option<Part>,
    /// Services to harm; all without it.
    #[arg(value_name = "SERVICE", value_parser = PossibleValuesParser::new(SERVICES))]
    services: Vec<String>,
    /// Faults in each service.
    #[arg(long, value_name = "N", default_value = "500", value_parser = value_parser!(u64).range(1..))]
    faults: u64,
    /// From which places, bits and moments are drawn; what comes of them depends on time as well.
    #[arg(long, value_name = "N", default_value = "1")]
    seed: u64,
    /// One bit in one of eight registers, in place of one in each.
    #[arg(long)]
    single: bool,
    /// The faults of this file, a campaign of `outlast inject`, in place of bits in registers.
    #[arg(long, value_name = "FILE", conflicts_with = "single")]
    list: Option<PathBuf>,
    /// One JSON object a service.
    #[arg(long)]
    json: bool,
}

#[derive(Subcommand)]
enum Part {
    /// The clients of a service, without end.
    #[command(hide = true)]
    Load { service: String, seed: u64 },
    /// A service and clients that each make so many steps: a target for `outlast inject`.
    Steady {
        #[arg(value_parser = PossibleValuesParser::new(SERVICES))]
        service: String,
        #[arg(default_value = "1")]
        seed: u64,
        #[arg(default_value = "1000")]
        steps: u64,
    },
}

fn main() -> ExitCode {
    let options = Options::parse();
    match &options.part {
        Some(Part::Load { service, seed }) => return load::run(service, *seed),
        Some(Part::Steady { service, seed, steps }) => return steady::run(service, *seed, *steps),
        None => (),
    }
    let list = match &options.list {
        None => Ok(if options.single { SINGLE.to_string() } else { EIGHT.to_string() }),
        Some(file) => std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display())),
    };
    let list = match list.and_then(|text| Faults::parse(&text)) {
        Ok(list) => list,
        Err(why) => {
            eprintln!("glue-campaign: the list of faults: {why}");
            return ExitCode::from(2);
        }
    };
    let named = |service: &&str| options.services.is_empty() || options.services.iter().any(|name| name == service);
    if !options.json {
        println!("seed {}, {} faults a service", options.seed, options.faults);
    }
    for service in SERVICES.into_iter().filter(named) {
        match campaign(service, options.faults, options.seed, &list) {
            Ok(outcomes) if options.json => println!("{}", outcomes.json(service)),
            Ok(outcomes) => print!("{}", outcomes.text(service)),
            Err(why) => {
                eprintln!("glue-campaign: {service} does not even work unharmed: {why}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

fn campaign(service: &str, faults: u64, seed: u64, list: &Faults) -> Result<Outcomes, String> {
    let mut chance = Chance::new(seed);
    let mut all = Outcomes(Vec::new());
    let mut bench: Option<Bench> = None;
    while (all.0.len() as u64) < faults {
        let number = all.0.len();
        let fresh = bench.is_none();
        let at = bench.get_or_insert_with(|| Bench::new(service, seed + number as u64));
        if fresh {
            let deaths = at.handle.deaths().0;
            let (outcome, why) = at.watch(deaths, at.handle.instance());
            if outcome != Outcome::NoEffect {
                return Err(why);
            }
        }
        std::thread::sleep(Duration::from_micros(chance.below(2_000)));
        let deaths = at.handle.deaths().0;
        let instance = at.handle.instance();
        if instance == 0 {
            continue;
        }
        let Some(harm) = list.strike(instance as libc::pid_t, chance.below(u64::MAX)) else { continue };
        let (outcome, cause) = at.watch(deaths, instance);
        if !matches!(outcome, Outcome::NoEffect | Outcome::Recovered) {
            // Who knows what is left of it.
            bench = None;
        }
        all.0.push(Fault { harm, outcome, cause });
    }
    Ok(all)
}
