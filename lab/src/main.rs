//! `outlast-lab`: boots real kernels under QEMU, breaks what runs there, and looks what is left of it.

mod boot;
mod disk;
mod guest;
mod initramfs;
mod nbd;
mod oom;
mod oracle;
mod power;
mod shell;

use clap::{Parser, Subcommand};
use std::error::Error;

/// Boot real kernels in virtual machines, break what runs there, and look what is left of it
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    experiment: Experiment,
}

#[derive(Subcommand)]
enum Experiment {
    Power(power::Arguments),
    Oom(oom::Arguments),
}

fn main() -> Result<(), Box<dyn Error>> {
    match Arguments::parse().experiment {
        Experiment::Power(arguments) => power::run(&arguments),
        Experiment::Oom(arguments) => oom::run(&arguments),
    }
}

/// What to say of a seed where nobody gave one.
fn seed() -> u64 {
    u64::from(std::process::id()) ^ 0x6f75_746c
}
