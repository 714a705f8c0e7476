//! `outlast module`: the policies that protect programs, and how each does.

mod add;
mod designate;
mod follow;
pub mod leave;
mod list;
mod load;

use crate::state;
use add::Add;
use clap::{Args, Subcommand};
use list::List;
use load::{Load, Unload};
use outlast_interfaces::change::Change;
use outlast_supervisor::say::say;
use outlast_supervisor::wishing::{self, Taken};
use outlast_supervisor::Error;

/// Show, add and remove the modules that protect programs, also programs that run, and load others from files
#[derive(Args)]
pub struct Module {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    List(List),
    Add(Add),
    Remove(Remove),
    Load(Load),
    Unload(Unload),
    #[command(name = outlast_daemon::DESIGNATED, hide = true)]
    Designated(follow::Designated),
    #[command(name = outlast_daemon::FOLLOW, hide = true)]
    Follow(follow::Follow),
    #[command(name = outlast_daemon::DESIGNATE, hide = true)]
    Designate(designate::Designate),
    #[command(name = outlast_daemon::LEAVE, hide = true)]
    Leave(leave::Leave),
}

/// Have a module protect a program that runs no longer
///
/// Without crash nothing is recovered any more: a fatal signal is the program's end, and after a kill `outlast resume` goes on with it. Without visible
/// it is committed as with `outlast run --commit manual`, without checkpoint no more while it computes.
#[derive(Args)]
struct Remove {
    module: String,
    program: String,
}

impl Module {
    pub fn execute(self) -> Result<i32, Error> {
        match self.command {
            Command::List(command) => command.execute(),
            Command::Add(add) => match add.wish() {
                Ok((program, change)) => change_of(&program, &change),
                Err(why) => {
                    say(format_args!("{why}"));
                    Ok(2)
                }
            },
            Command::Remove(Remove { module, program }) => change_of(&program, &Change::Remove(module)),
            Command::Load(command) => command.execute(),
            Command::Unload(command) => command.execute(),
            Command::Designated(command) => command.execute(),
            Command::Follow(command) => command.execute(),
            Command::Designate(command) => command.execute(),
            Command::Leave(command) => command.execute(),
        }
    }
}

/// Has a program's supervisor change what protects it.
pub fn change_of(program: &str, change: &Change) -> Result<i32, Error> {
    let folder = state::open()?.program(program)?;
    if wishing::ask(&folder, change)? == Taken::NotYet {
        say(format_args!(
            "{program} is stopped, or stuck in the kernel: its engine goes by that as soon as it goes on"
        ));
    }
    Ok(0)
}
