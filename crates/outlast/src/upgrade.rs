//! `outlast upgrade`, and what another outlast asks this one before.

use crate::{output, state};
use clap::Args;
use outlast_image::layout;
use outlast_supervisor::upgrade::{ask, SAYS};
use outlast_supervisor::{orphans, say::say, Error};
use std::path::PathBuf;

/// Have programs that run watched by this outlast, after it was installed in place of another one
///
/// They notice nothing. Inside them stays the engine of the one before until they execute another program or are started anew; an outlast
/// that does not fit it is refused, and the one before goes on.
#[derive(Args)]
pub struct Upgrade {
    /// The programs  [default: all of yours that run]
    names: Vec<String>,
    /// Another outlast than this one
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
}

/// Say which layout of memory and files this outlast speaks
#[derive(Args)]
pub struct Layout {}

impl Upgrade {
    pub fn execute(self) -> Result<i32, Error> {
        let binary = match self.binary {
            Some(binary) => std::path::absolute(binary),
            None => std::env::current_exe(),
        };
        let binary = binary.map_err(Error::Output)?;
        let state = state::open()?;
        let all = self.names.is_empty();
        let names = if all { state.names()? } else { self.names };
        let mut status = 0;
        for name in names {
            let folder = state.program(&name)?;
            let lives = || folder.open_session().is_ok_and(|session| orphans::is_alive(&session));
            if all && !lives() {
                continue;
            }
            // One that ends just now has not to be told of.
            if let Err(e) = ask(&folder, &binary).or_else(|e| if all && !lives() { Ok(()) } else { Err(e) }) {
                say(format_args!("{e}"));
                status = 1;
            }
        }
        Ok(status)
    }
}

impl Layout {
    pub fn execute(self) -> Result<i32, Error> {
        output::text(&format!("{SAYS}{}\n", layout::VERSION))
    }
}
