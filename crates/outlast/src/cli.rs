//! Commands and their options.

use clap::{Parser, Subcommand};
use outlast_supervisor::Error;

/// Your program outlasts its own crashes and kill -9.
#[derive(Parser)]
#[command(name = "outlast", version, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(crate::run::Run),
}

impl Cli {
    pub fn execute(self) -> Result<i32, Error> {
        match self.command {
            Command::Run(run) => run.execute(),
        }
    }
}

/// Says what is wrong with the command line: one line; help as it is.
pub fn usage(e: &clap::Error) -> Result<i32, Error> {
    if e.use_stderr() {
        let text = e.to_string();
        eprintln!("outlast: {}", text.lines().next().unwrap_or_default().trim_start_matches("error: "));
        return Ok(2);
    }
    print!("{e}");
    Ok(0)
}
