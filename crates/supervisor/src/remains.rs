//! What is left of a program, to be taken over or removed.

use crate::decision::Load;
use crate::engine::Engine;
use crate::error::Error;
use crate::exec::promote;
use crate::generation::Generation;
use crate::launch::Command;
use crate::meta::{self, Meta};
use crate::orphans::{bury, is_alive};
use crate::program_folder::{Lock, ProgramFolder};
use crate::session::Session;
use crate::signals::Signals;
use crate::state_folder::StateFolder;
use crate::stores::StorePlace;
use crate::supervisor::{Parts, Supervisor};
use std::ffi::OsString;
use std::path::Path;
use std::rc::Rc;

/// What is left of a program, taken over.
pub struct Remains {
    folder: ProgramFolder,
    lock: Lock,
    stores: StorePlace,
    meta: Meta,
}

impl Remains {
    /// Locks a program.
    ///
    /// # Errors
    /// It has a supervisor, has ended, or is not described.
    pub fn of(name: &str) -> Result<Self, Error> {
        let folder = StateFolder::open()?.program(name)?;
        let lock = folder.lock()?.ok_or_else(|| Error::Running(name.into()))?;
        Self::described(folder, lock)
    }

    /// A program whose lock was handed down.
    pub fn locked(name: &str, lock: Lock) -> Result<Self, Error> {
        Self::described(StateFolder::open()?.program(name)?, lock)
    }

    fn described(folder: ProgramFolder, lock: Lock) -> Result<Self, Error> {
        let meta = Meta::read(&folder)?;
        let stores = StorePlace::of(&folder, meta.store.as_ref().map(|path| path.to_path()).as_deref())?;
        promote(&folder, &stores, meta.generation)?;
        Ok(Self { folder, lock, stores, meta })
    }

    /// Locks a program whose store lies in this folder on a disk, and describes it anew if its folder is gone.
    pub fn on_disk(name: &str, path: &Path) -> Result<Self, Error> {
        match Self::of(name) {
            Err(Error::NoSuchProgram(_)) => (),
            known => return known,
        }
        let (folder, lock) = StateFolder::open()?.create(Some(name), Path::new(name))?;
        let stores = StorePlace::in_folder(path, name)?;
        let meta = Meta { supervisor: meta::Supervisor::this(), ..Meta::read_beside(&stores)? };
        meta.write(&folder, &stores)?;
        promote(&folder, &stores, meta.generation)?;
        Ok(Self { folder, lock, stores, meta })
    }

    /// Removes what is left of a program that does not run: its store, its log, its description.
    pub fn remove(folder: ProgramFolder) -> Result<(), Error> {
        let Some(_lock) = folder.lock()? else { return Err(Error::Running(folder.name().into())) };
        if folder.open_session().is_ok_and(|session| is_alive(&session)) {
            return Err(Error::Running(folder.name().into()));
        }
        bury(&folder);
        folder.clear()
    }

    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    pub fn stores(&self) -> &StorePlace {
        &self.stores
    }

    pub fn folder(&self) -> &ProgramFolder {
        &self.folder
    }

    /// A supervisor for it, with this session; no process is watched yet.
    pub fn supervise(self, session: Session, load: Load<'_>) -> Result<Supervisor, Error> {
        let Self { folder, lock, stores, mut meta } = self;
        // Before there is another thread, which would have them unblocked and take them.
        let signals = Signals::block().map_err(|e| Error::Kernel("block signals", e))?;
        let argv: Vec<OsString> = meta.argv.iter().map(|arg| arg.to_os_string()).collect();
        let command = Command::new(&meta.exe.to_path(), &argv)?;
        let generation = Generation::new(&folder, meta.generation, session, stores.open()?)?;
        meta.supervisor = meta::Supervisor::this();
        meta.ended = None;
        let decides = load(folder.name(), &mut meta.options)?;
        Supervisor::new(
            Parts { folder, lock, stores, meta, command, engine: Rc::new(Engine::new()?), signals, decides },
            generation,
        )
    }
}
