//! The log of a system of components: that of a program of its name, so that `outlast log NAME` shows it, `outlast ps` lists it, and
//! `outlast rm NAME` removes it once the system has ended.
//!
//! ```no_run
//! let log = outlast_glue_log::SystemLog::create("shop")?;
//! let system = outlast_glue_rt::System::kept(outlast_glue_rt::Keeping::new().tell(log));
//! # Ok::<(), outlast_supervisor::Error>(())
//! ```

mod line;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;

use outlast_glue_rt::{Happened, Tell};
use outlast_supervisor::log::FILE;
use outlast_supervisor::program_folder::{Lock, ProgramFolder};
use outlast_supervisor::state_folder::StateFolder;
use outlast_supervisor::{systems, Error};
use rustix::fs::OFlags;

pub use line::Line;

/// It has the name as long as it lives.
pub struct SystemLog {
    folder: ProgramFolder,
    file: File,
    _lock: Lock,
    /// Of each component, what its last instance ended of.
    causes: BTreeMap<String, String>,
}

impl SystemLog {
    /// In the user's state folder.
    ///
    /// # Errors
    /// The name is none, or a program or system has it.
    pub fn create(name: &str) -> Result<Self, Error> {
        Self::create_in(&StateFolder::open()?, name)
    }

    /// In this one.
    ///
    /// # Errors
    /// The name is none, or a program or system has it.
    pub fn create_in(state: &StateFolder, name: &str) -> Result<Self, Error> {
        let (folder, lock) = state.create(Some(name), Path::new(name))?;
        let file = folder.open_file(FILE, OFlags::CREATE | OFlags::WRONLY | OFlags::APPEND)?;
        systems::began(&folder)?;
        Ok(Self { folder, file: file.into(), _lock: lock, causes: BTreeMap::new() })
    }
}

impl Drop for SystemLog {
    fn drop(&mut self) {
        // Where this fails `ps` shows it as long as its manager lives, and nothing else depends on it.
        let _ = systems::ended(&self.folder);
    }
}

impl Tell for SystemLog {
    fn tell(&mut self, component: &str, happened: &Happened) {
        let Some(line) = Line::of(component, happened, &mut self.causes) else { return };
        // A log that cannot be written must not disturb the system: the line is then missing.
        if let Ok(mut text) = serde_json::to_vec(&line) {
            text.push(b'\n');
            let _ = self.file.write_all(&text);
        }
    }
}
