//! `outlast completions`: for the shells.

use crate::{cli::Cli, output};
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use outlast_supervisor::Error;

/// Print the completions of a shell
#[derive(Args)]
pub struct Completions {
    shell: Shell,
}

impl Completions {
    pub fn execute(self) -> Result<i32, Error> {
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "outlast", &mut text);
        output::text(&String::from_utf8_lossy(&text))
    }
}
