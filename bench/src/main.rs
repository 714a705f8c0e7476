//! Measures every number that SPECIFICATION.md promises.
//!
//! A *promise* is a number with a unit and a limit. A *measurement* shows one or several promises in rounds: each round
//! is a native run and a protected run of the same program right after each other, so that a noisy machine disturbs both
//! alike. What cannot be measured is reported as such, with the reason.
//!
//! `evaluation` repeats the evaluation of a paper in the same way, beside the paper's figures.

mod cli;
mod conditions;
mod cpu;
mod evaluation;
mod failure;
mod launch;
mod machine;
mod measure;
mod measurement;
mod pipe;
mod port;
mod processors;
mod promise;
mod report;
mod rounds;
mod running;
mod statistics;
mod terminal;
mod trial;
mod user;
mod workshop;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    // What a measured program orphans becomes our child, and is ended with it.
    let own = rustix::process::getpid();
    if let Err(e) = rustix::process::set_child_subreaper(Some(own)) {
        eprintln!("outlast-bench: cannot become a subreaper: {e}");
        return ExitCode::FAILURE;
    }
    match cli::Cli::parse().execute() {
        Ok(status) => status,
        Err(failure) => {
            eprintln!("outlast-bench: {failure}");
            ExitCode::FAILURE
        }
    }
}
