//! `outlast off`, `outlast on`.

use crate::module::leave;
use crate::{output, state};
use clap::Args;
use outlast_daemon::leave_all;
use outlast_supervisor::state_folder::{StateFolder, VARIABLE};
use outlast_supervisor::switch::{is_off, Whose, OF_ALL};
use outlast_supervisor::{say::say, status, Error};
use std::path::Path;

/// Protect no program any more that begins from now on: for everybody if root says so, else for your own
///
/// `outlast run` then runs programs as if outlast were not there, and `outlast daemon` lets all be. Programs that are protected stay
/// so, unless --detach is given. `outlast on`, or the next boot, ends it.
#[derive(Args)]
pub struct Off {
    /// And leave those alone that run protected, as `outlast detach` does: they run on; root's word is for everybody's
    #[arg(long)]
    detach: bool,
}

/// Protect programs again, after `outlast off`
#[derive(Args)]
pub struct On {}

impl Off {
    pub fn execute(self) -> Result<i32, Error> {
        switch(true)?;
        if self.detach {
            return detach();
        }
        let state = StateFolder::open()?;
        let running = status::all(&state)?.iter().filter(|program| program.protected).count();
        match running {
            0 => Ok(0),
            n => output::text(&format!(
                "{n} of your programs that run stay protected; `outlast off --detach` leaves them alone, too, and `outlast stop NAME` ends one\n"
            )),
        }
    }
}

impl On {
    pub fn execute(self) -> Result<i32, Error> {
        switch(false)?;
        if is_off(&state::open()?) {
            say(format_args!("it is still off for all users, by root"));
        }
        Ok(0)
    }
}

/// Leaves all alone that run; 1 if some would not let go.
fn detach() -> Result<i32, Error> {
    let mut left = leave::all()?;
    if is_of_all() {
        left.extend(leave_all());
    }
    left.sort();
    left.dedup();
    left.iter().for_each(|what| say(format_args!("{what}")));
    Ok(i32::from(!left.is_empty()))
}

/// Who works in a folder of their own choice means that.
fn is_of_all() -> bool {
    rustix::process::geteuid().is_root() && std::env::var_os(VARIABLE).is_none()
}

fn switch(off: bool) -> Result<(), Error> {
    if is_of_all() {
        Whose::All(Path::new(OF_ALL)).switch(off).map_err(|e| Error::File(OF_ALL.into(), e))
    } else {
        let state = StateFolder::open()?;
        Whose::User(&state).switch(off).map_err(|e| Error::File(state.path().join("+off"), e))
    }
}

/// Says so if it is off, for lists that otherwise look as if nothing were wrong.
pub fn tell(state: &StateFolder) {
    if is_off(state) {
        say(format_args!("it is off: no program that begins is protected, until `outlast on`"));
    }
}
