//! Commands and their options.

use crate::{
    attach, check, commit, completions, daemon, detach, fork, generations, headers, inject, log, manual, metrics,
    module, node, pin, policy, ps, report, resume, rewind, rm, run, stop, supervise, switch, top, upgrade,
};
use clap::{Parser, Subcommand};
use outlast_supervisor::Error;

/// Your program outlasts its own crashes and kill -9.
#[derive(Parser)]
#[command(name = "outlast", version, arg_required_else_help = true, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(run::Run),
    Attach(attach::Attach),
    Detach(detach::Detach),
    Check(check::Check),
    Ps(ps::Ps),
    Top(top::Top),
    Log(log::Log),
    Resume(resume::Resume),
    Commit(commit::Commit),
    Generations(generations::Generations),
    Rewind(rewind::Rewind),
    Fork(fork::Fork),
    Stop(stop::Stop),
    Rm(rm::Rm),
    Off(switch::Off),
    On(switch::On),
    Upgrade(upgrade::Upgrade),
    Daemon(daemon::Daemon),
    Policy(policy::Policy),
    Metrics(metrics::Metrics),
    Module(module::Module),
    Pin(pin::Pin),
    Node(node::Node),
    Inject(inject::Inject),
    Report(report::Report),
    Completions(completions::Completions),
    #[command(hide = true)]
    Manual(manual::Manual),
    Headers(headers::Headers),
    #[command(name = outlast_supervisor::upgrade::COMMAND, hide = true)]
    Layout(upgrade::Layout),
    #[command(name = outlast_supervisor::orphans::COMMAND, hide = true)]
    Supervise(supervise::Supervise),
}

impl Cli {
    /// Does what was asked; returns the exit status.
    pub fn execute(self) -> Result<i32, Error> {
        match self.command {
            Command::Run(command) => command.execute(),
            Command::Attach(command) => command.execute(),
            Command::Detach(command) => command.execute(),
            Command::Check(command) => command.execute(),
            Command::Ps(command) => command.execute(),
            Command::Top(command) => command.execute(),
            Command::Log(command) => command.execute(),
            Command::Resume(command) => command.execute(),
            Command::Commit(command) => command.execute(),
            Command::Generations(command) => command.execute(),
            Command::Rewind(command) => command.execute(),
            Command::Fork(command) => command.execute(),
            Command::Stop(command) => command.execute(),
            Command::Rm(command) => command.execute(),
            Command::Off(command) => command.execute(),
            Command::On(command) => command.execute(),
            Command::Upgrade(command) => command.execute(),
            Command::Layout(command) => command.execute(),
            Command::Daemon(command) => command.execute(),
            Command::Policy(command) => command.execute(),
            Command::Metrics(command) => command.execute(),
            Command::Module(command) => command.execute(),
            Command::Pin(command) => command.execute(),
            Command::Node(command) => command.execute(),
            Command::Inject(command) => command.execute(),
            Command::Report(command) => command.execute(),
            Command::Completions(command) => command.execute(),
            Command::Manual(command) => command.execute(),
            Command::Headers(command) => command.execute(),
            Command::Supervise(command) => command.execute(),
        }
    }
}

/// Says what is wrong with a command line in one line, or prints the help that was asked for.
pub fn usage(e: &clap::Error) -> Result<i32, Error> {
    if !e.use_stderr() {
        return e.print().map(|()| 0).map_err(Error::Output);
    }
    let text = e.to_string();
    let mut lines = text.lines().map(str::trim).take_while(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default().trim_start_matches("error: ").to_string();
    let line = lines.fold(first, |line, more| format!("{line} {more}"));
    outlast_supervisor::say::say(format_args!("{line} (try 'outlast --help')"));
    Ok(2)
}
