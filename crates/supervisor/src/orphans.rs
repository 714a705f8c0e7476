//! Programs whose supervisor is gone: those that live get another one, of those that ended nothing stays.

use crate::error::Error;
use crate::exec::promote;
use crate::generation::file_name;
use crate::meta::Meta;
use crate::program_folder::{Lock, ProgramFolder};
use crate::session::Session;
use crate::state_folder::StateFolder;
use crate::status;
use crate::stores::StorePlace;
use outlast_image::control::state;
use rustix::io::Errno;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering::Acquire;

/// Name of the command by which outlast starts itself as a supervisor.
pub const COMMAND: &str = "supervise";

/// Starts a supervisor for every program of the user that lives without one.
pub fn revive(state: &StateFolder) -> Result<(), Error> {
    for name in state.names()? {
        let Ok(folder) = state.program(&name) else { continue };
        if !folder.has("session") {
            continue;
        }
        // What cannot be locked has a supervisor; what cannot be read is being made or removed.
        let Ok(Some(lock)) = folder.lock() else { continue };
        if settle(&folder).is_err() {
            continue;
        }
        let Ok(session) = folder.open_session() else { continue };
        if is_alive(&session) || newer_session(&folder).is_some_and(|session| is_alive(&session)) {
            start_supervisor(&name, &lock)?;
        } else if !is_resumable(&session) {
            bury(&folder);
        }
    }
    Ok(())
}

/// Finishes what a supervisor was doing when it died, so that the names of files tell which of them count.
fn settle(folder: &ProgramFolder) -> Result<(), Error> {
    let meta = Meta::read(folder)?;
    let stores = StorePlace::of(folder, meta.store.map(|path| path.to_path()).as_deref())?;
    promote(folder, &stores, meta.generation)
}

/// Whether a process of the program lives.
pub fn is_alive(session: &Session) -> bool {
    let control = session.control();
    let pids = [control.program_pid.load(Acquire), control.anchor_pid.load(Acquire)];
    pids.into_iter().any(|pid| status::holder(session, pid).is_some())
}

/// Whether a dead program can be brought back from its store.
pub fn is_resumable(session: &Session) -> bool {
    session.has_commit()
        && !matches!(session.control().state.load(Acquire), state::SUSPENDED | state::EXITING | state::GIVEN_UP)
}

/// Removes what is left of a program that ended while nobody watched.
pub fn bury(folder: &ProgramFolder) {
    let place = |meta: Meta| StorePlace::of(folder, meta.store.map(|path| path.to_path()).as_deref());
    if let Ok(stores) = Meta::read(folder).and_then(place) {
        stores.remove(0);
        let _ = stores.archive().map(|archive| archive.clear());
    }
    folder.remove("session");
}

/// The session of an image that was to take the place of the one before when the supervisor died.
pub fn newer_session(folder: &ProgramFolder) -> Option<Session> {
    let next = Meta::read(folder).ok()?.generation + 1;
    folder.open_session_file(&file_name("session", next)).ok()
}

/// Starts `outlast supervise`, detached from the terminal, with the program's lock handed down.
pub fn start_supervisor(name: &str, lock: &Lock) -> Result<(), Error> {
    let fd = lock.file().as_raw_fd();
    let mut command = Command::new("/proc/self/exe");
    command.arg0("outlast").args([COMMAND, name, "--lock", &fd.to_string()]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // SAFETY: the closure makes two system calls and touches no memory.
    unsafe {
        command.pre_exec(move || {
            libc::setsid();
            match libc::fcntl(fd, libc::F_SETFD, 0) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        });
    }
    let started = command.spawn().map(drop);
    started.map_err(|e| Error::Kernel("start a supervisor", Errno::from_io_error(&e).unwrap_or(Errno::IO)))
}
