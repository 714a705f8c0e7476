//! The user's programs, each with a supervisor.

use outlast_supervisor::adopt::revive_orphans;
use outlast_supervisor::files::StateFolder;
use outlast_supervisor::Error;

/// Opens the state folder; programs whose supervisor was killed get another one.
pub fn open() -> Result<StateFolder, Error> {
    let state = StateFolder::open()?;
    revive_orphans(&state)?;
    Ok(state)
}
