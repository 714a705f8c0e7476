//! The user's programs, each with a supervisor.

use outlast_supervisor::orphans::revive;
use outlast_supervisor::state_folder::StateFolder;
use outlast_supervisor::Error;

/// Opens the state folder; programs whose supervisor was killed get another one.
pub fn open() -> Result<StateFolder, Error> {
    let state = StateFolder::open()?;
    revive(&state)?;
    Ok(state)
}
