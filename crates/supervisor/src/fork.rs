//! `outlast fork`: a copy of a program goes on from an older generation, or from the last commit, under a name of its own.
//!
//! The files that it has open are the same files, by name; connections are found closed, unless they are given to it;
//! standard input, output and error are those of whoever forks.

use crate::clock;
use crate::decision::Load;
use crate::encryption::{unlock, Encryption};
use crate::end::End;
use crate::engine::Engine;
use crate::error::Error;
use crate::further_back::replace;
use crate::generation::Generation;
use crate::generations::none_of;
use crate::keeping::PutOff;
use crate::launch::Command;
use crate::log::{Entry, Kind};
use crate::meta::{self, Meta};
use crate::orphans::{is_alive, is_resumable};
use crate::program_folder::ProgramFolder;
use crate::progress::{half, Bar};
use crate::session::Session;
use crate::signals::Signals;
use crate::state_folder::StateFolder;
use crate::stores::StorePlace;
use crate::supervisor::{Parts, Supervisor};
use crate::{processes, status};
use outlast_archive::{Archive, ArchiveError, Place, Policy, Writer};
use outlast_image::control::other_state;
use outlast_image::layout::{ENGINE_FDS, HIDING_FDS};
use rustix::fs::{fstat, FileType};
use rustix::io::Errno;
use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::SystemTime;

/// How often a generation is read again that was given up in the middle.
const TRIES: u32 = 3;
/// An archive that holds one generation for a moment.
const FOR_A_MOMENT: Policy = Policy { every_ns: u64::MAX, keep_ns: u64::MAX, budget: u64::MAX };

/// Runs a copy of a program in the current terminal, until it has ended for good. `number`: the generation; none: the last
/// commit. `shares`: what connections the program has open the copy has, too. `key`: where the key file of its generations is, if
/// not where it was.
pub fn fork(
    of: &ProgramFolder,
    number: Option<u64>,
    name: Option<&str>,
    shares: bool,
    key: Option<&Path>,
    load: Load<'_>,
) -> Result<End, Error> {
    let mut original = Meta::read(of)?;
    let session = of.open_session().map_err(|_| Error::NothingLeft(of.name().into()))?;
    let alive = is_alive(&session);
    if original.ended.is_some() || original.going_back.is_some() || !alive && !is_resumable(&session) {
        return Err(Error::NothingLeft(of.name().into()));
    }
    let connections = if shares { connections(of.name(), &session)? } else { Vec::new() };
    let mut place = StorePlace::of(of, original.store.as_ref().map(|path| path.to_path()).as_deref())?;
    unlock(&mut place, &mut original, key)?;
    // The generations of the copy are none of the original's.
    original.encryption = original.encryption.as_ref().map(Encryption::renewed).transpose()?;
    let state = StateFolder::open()?;
    let (folder, lock) = state.create(name, Path::new(of.name()))?;
    let mut stores = match &original.store {
        Some(path) => StorePlace::of(&folder, Some(&path.to_path()))?,
        None => StorePlace::beside(&folder)?,
    };
    unlock(&mut stores, &mut original, None)?;
    let copied = copy(of, &original, &place, &session, alive, number, &folder, &stores);
    let (generation, mut meta) = copied.inspect_err(|_| {
        stores.remove(0);
        // What cannot be removed is taken over by the next program of this name.
        let _ = folder.clear();
    })?;
    let signals = Signals::block().map_err(|e| Error::Kernel("block signals", e))?;
    let argv: Vec<OsString> = meta.argv.iter().map(|arg| arg.to_os_string()).collect();
    let mut command = Command::new(&meta.exe.to_path(), &argv)?;
    command.give(connections).map_err(|e| Error::Kernel("copy a connection", e))?;
    let cwd = meta.cwd.to_path();
    std::env::set_current_dir(&cwd).map_err(|e| Error::File(cwd, Errno::from_io_error(&e).unwrap_or(Errno::IO)))?;
    meta.write(&folder, &stores)?;
    let generation = Generation::new(&folder, meta.generation, generation, stores.open()?)?;
    let decides = load(folder.name(), &mut meta.options)?;
    let mut supervisor = Supervisor::new(
        Parts { folder, lock, stores, meta, command, engine: Rc::new(Engine::new()?), signals, decides },
        generation,
    )?;
    supervisor.committed = true;
    let from = number.map_or_else(|| "its last commit".into(), |number| format!("generation {number}"));
    supervisor.log.add(&Entry::new(Kind::Forked).cause(format!("{}, {from}", of.name())));
    let end = match supervisor.cold_resume("fork", clock::monotonic()) {
        Some(end) => end,
        None => {
            supervisor.command.give_nothing();
            supervisor.watch()
        }
    };
    if supervisor.kept {
        // A copy that never ran is nothing that anybody wants to keep.
        supervisor.clear_away();
        return Ok(End::Exited(1));
    }
    Ok(end)
}

/// The sockets and pipes of a program that runs, and their numbers, but for the standard streams and the engine's own.
fn connections(name: &str, session: &Session) -> Result<Vec<(OwnedFd, RawFd)>, Error> {
    let pid = status::program(session, None).ok_or_else(|| Error::NotRunning(name.into()))?;
    let first = session.inject_args().session_fd;
    let engines = first..first + ENGINE_FDS + HIDING_FDS;
    let mut found = Vec::new();
    for number in processes::descriptors(pid).into_iter().filter(|number| *number > 2 && !engines.contains(number)) {
        // One that was closed meanwhile is closed in the copy as well.
        match processes::descriptor_of(pid, number) {
            Ok(fd) if is_connection(&fd) => found.push((fd, number)),
            Ok(_) | Err(Errno::BADF) => (),
            Err(e) => return Err(Error::Kernel("take over a connection of the program", e)),
        }
    }
    Ok(found)
}

fn is_connection(fd: &OwnedFd) -> bool {
    let kind = fstat(fd).map(|stat| FileType::from_raw_mode(stat.st_mode));
    matches!(kind, Ok(FileType::Socket | FileType::Fifo))
}

/// Session, store and description of the copy.
#[allow(clippy::too_many_arguments, reason = "both sides of a copy")]
fn copy(
    of: &ProgramFolder,
    original: &Meta,
    place: &StorePlace,
    from: &Session,
    alive: bool,
    number: Option<u64>,
    folder: &ProgramFolder,
    stores: &StorePlace,
) -> Result<(Session, Meta), Error> {
    let failed = |error| Error::Generation(of.name().into(), error);
    let session = folder.create_session("session")?;
    // There is one to be recovered from, as soon as there is a process.
    session.control().commits.store(1, Release);
    session.control().other_state.store(other_state::COPY, Release);
    let made_for = (&original.options, original.generation);
    let last = from.control().last_seq.load(Acquire);
    let made = |place: &Place, number| -> Result<(), ArchiveError> {
        let store = stores.create(0).map_err(|_| ArchiveError::NoRoom)?;
        let kept = Archive::list(place)?.into_iter().find(|kept| kept.number == number);
        let bar = Bar::of("copying", kept.map_or(0, |kept| kept.pages));
        replace(store, place, number, last, made_for, &|done, all| bar.at(half(0, done, all) * 2))
    };
    match number {
        Some(number) => {
            let archive = place.archive()?;
            let mut copied = made(&archive, number);
            for _ in 1..TRIES {
                if copied.is_ok() {
                    break;
                }
                copied = made(&archive, number);
            }
            copied.map_err(|error| match error {
                ArchiveError::Missing(_) => {
                    none_of(of.name(), &Archive::list(&archive).unwrap_or_default(), &number.to_string())
                }
                error => failed(error),
            })?;
        }
        None => {
            let mut archive = Archive::open(stores.archive()?, FOR_A_MOMENT).map_err(failed)?;
            let (store, over) = (place.open()?, AtomicU32::new(0));
            let hold = PutOff { session: from, store: &store, over: &over };
            let writer = if alive { Writer::Program(&hold) } else { Writer::Nobody };
            let kept = archive.keep(store.as_fd(), &writer).map_err(failed)?;
            let copied = made(archive.place(), kept.number);
            archive.place().clear();
            copied.map_err(failed)?;
        }
    }
    let meta = Meta {
        started: humantime::format_rfc3339_micros(SystemTime::now()).to_string(),
        store: original.store.as_ref().map(|_| stores.path().into()),
        supervisor: meta::Supervisor::this(),
        commits_before: 0,
        recoveries_before: 0,
        changed: None,
        designated: None,
        policy: None,
        first_ended: None,
        ..original.clone()
    };
    Ok((session, meta))
}
