//! `outlast-plugin`: for authors of plug-ins.

mod making;

use clap::{Parser, Subcommand};
use making::{bindings_for_c, component, Error, WIT};
use std::path::PathBuf;
use std::process::ExitCode;

/// Makes plug-ins of outlast from what compilers make
#[derive(Parser)]
#[command(name = "outlast-plugin", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Print the interface, as WIT
    Wit,
    /// Write bindings of the interface for C into a folder: module.h, module.c and module_component_type.o
    BindingsC {
        /// The folder, which is made if it is not there
        folder: PathBuf,
    },
    /// Make a component of a core module
    Component {
        /// What the compiler has made
        core: PathBuf,
        /// The component
        #[arg(short, long)]
        output: PathBuf,
    },
}

fn main() -> ExitCode {
    match execute(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("outlast-plugin: {e}");
            ExitCode::FAILURE
        }
    }
}

fn execute(command: Command) -> Result<(), Error> {
    match command {
        Command::Wit => {
            print!("{WIT}");
            Ok(())
        }
        Command::BindingsC { folder } => bindings_for_c(&folder),
        Command::Component { core, output } => {
            let bytes = std::fs::read(&core).map_err(|e| Error::File(core, e))?;
            std::fs::write(&output, component(&bytes)?).map_err(|e| Error::File(output, e))
        }
    }
}
