//! `outlast module load` and `unload`: modules from files.

use crate::installed::{self, Installed};
use clap::Args;
use outlast_plugins::{read, Compiled};
use outlast_supervisor::Error;
use std::path::PathBuf;

/// Load a module from a file, a Wasm component, for `outlast run --module`
///
/// The file is checked and copied to a folder of yours (root: /etc/outlast/modules; others: ~/.config/outlast/modules; wherever
/// OUTLAST_MODULES_DIR says). One of the same name is replaced: programs that it protects have the new one when their supervisor begins anew.
#[derive(Args)]
pub struct Load {
    file: PathBuf,
    /// What it is called  [default: the file's name, without .wasm]
    #[arg(long)]
    name: Option<String>,
}

/// Take a module away that was loaded from a file
///
/// Programs that it protects stay protected by it until their supervisor begins anew, which then tells the log that it is gone.
#[derive(Args)]
pub struct Unload {
    name: String,
}

impl Load {
    pub fn execute(self) -> Result<i32, Error> {
        let stem = || self.file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let name = self.name.clone().or_else(stem).unwrap_or_default();
        installed::check_name(&name)?;
        let refused = |e: outlast_plugins::Error| Error::Plugin(self.file.display().to_string(), e.to_string());
        let bytes = read(&self.file).map_err(refused)?;
        Compiled::of(&bytes).map_err(refused)?;
        Installed::make()?.add(&name, &bytes)?;
        Ok(0)
    }
}

impl Unload {
    pub fn execute(self) -> Result<i32, Error> {
        installed::check_name(&self.name)?;
        let removed = Installed::open()?.map_or(Ok(false), |installed| installed.remove(&self.name))?;
        match removed {
            true => Ok(0),
            false => Err(Error::Plugin(self.name, "it is not loaded".into())),
        }
    }
}
