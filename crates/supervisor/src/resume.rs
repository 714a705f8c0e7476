//! `outlast resume`: everything of a program died but its store.

use crate::adopt::take_over;
use crate::clock;
use crate::decision::Load;
use crate::encryption::unlock;
use crate::end::End;
use crate::error::Error;
use crate::foreign_filter;
use crate::generations::bar;
use crate::keeping::Keeping;
use crate::orphans::{is_alive, is_resumable};
use crate::remains::Remains;
use std::path::Path;

/// Resumes a program in the current terminal, and watches it until it has ended for good.
///
/// `store` is the folder of a store on a disk, where the state folder may have gone with the machine's memory. `key`: where the key
/// file of older generations is, if not where it was.
pub fn resume(name: &str, store: Option<&Path>, key: Option<&Path>, load: Load<'_>) -> Result<End, Error> {
    if let Some(refused) = foreign_filter::obstacle() {
        return Err(Error::Forbidden(refused));
    }
    let remains = match store {
        Some(path) => Remains::on_disk(name, path)?,
        None => take_over(name)?,
    };
    if remains.meta().ended.is_some() || !remains.stores().exists() {
        return Err(Error::NothingLeft(name.into()));
    }
    let session = match remains.folder().open_session() {
        Ok(session) if is_alive(&session) => return Err(Error::Running(name.into())),
        Ok(session) if is_resumable(&session) => session,
        Ok(_) => return Err(Error::NothingLeft(name.into())),
        // The machine was started again since: only a store on a disk is left.
        Err(_) => remains.folder().create_session("session")?,
    };
    let cwd = remains.meta().cwd.to_path();
    std::env::set_current_dir(&cwd)
        .map_err(|e| Error::File(cwd, rustix::io::Errno::from_io_error(&e).unwrap_or(rustix::io::Errno::IO)))?;
    let mut supervisor = remains.supervise(session, load)?;
    supervisor.committed = true;
    if key.is_some() {
        unlock(&mut supervisor.stores, &mut supervisor.meta, key)?;
        // One that is wrong is better known now.
        let archive = supervisor.take_archive()?;
        supervisor.keeping = archive.map_or(Keeping::Idle, Keeping::Paused);
    }
    if let Some(number) = supervisor.meta.going_back {
        supervisor.bar = bar(&supervisor.folder, number);
    }
    supervisor.finish_going_back()?;
    let end = match supervisor.cold_resume("resume", clock::monotonic()) {
        Some(end) => end,
        None => {
            supervisor.meta.write(&supervisor.folder, &supervisor.stores)?;
            supervisor.watch()
        }
    };
    // What could not be resumed has not ended.
    Ok(if supervisor.kept { End::Exited(1) } else { end })
}
