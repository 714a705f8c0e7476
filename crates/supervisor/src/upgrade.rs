//! Another outlast takes over from the one that a supervisor is, in the same process: the program, its parent and its terminal notice
//! nothing. What is in the program stays the engine of the one before until its next execve, so both must speak the same layout.

use crate::error::Error;
use crate::exec::Handover;
use crate::meta::Meta;
use crate::program_folder::ProgramFolder;
use crate::supervisor::Supervisor;
use crate::wish::{read, write};
use crate::{again, processes};
use outlast_image::layout;
use rustix::event::{poll, PollFd, PollFlags};
use rustix::fs::{fstat, open, stat, FileType, Mode, OFlags};
use rustix::process::{geteuid, pidfd_send_signal, Signal};
use rustix::time::Timespec;
use std::ffi::OsStr;
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The command by which outlast says which layout it speaks, and what it says before the number.
pub const COMMAND: &str = "layout";
pub const SAYS: &str = "outlast layout ";

/// The wish: the path of the other outlast. While it is written, and what was answered if it was not granted.
pub(crate) const WISH: &str = "upgrade";
const UNFINISHED: &str = "upgrade.new";
const REFUSED: &str = "upgrade.refused";

/// How long all that may take, and how often a supervisor is asked to look: it may have other things to do.
const PATIENCE: Duration = Duration::from_secs(20);
const PULSE: Duration = Duration::from_millis(50);
/// How long a supervisor waits for the other outlast to say what it speaks.
const ANSWER: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };

/// Has the program's supervisor become the outlast at this path.
///
/// # Errors
/// It goes on as it is.
pub fn ask(folder: &ProgramFolder, binary: &Path) -> Result<(), Error> {
    let name = || folder.name().to_string();
    let supervisor = Meta::read(folder).map(|meta| meta.supervisor).map_err(|_| Error::NotRunning(name()))?;
    let pidfd = processes::open(supervisor.pid).map_err(|_| Error::NotRunning(name()))?;
    if !supervisor.is_alive() {
        return Err(Error::NotRunning(name()));
    }
    let identity = |path: &Path| stat(path).map(|stat| (stat.st_dev, stat.st_ino));
    let wanted = identity(binary).map_err(|e| Error::File(binary.into(), e))?;
    let runs = PathBuf::from(format!("/proc/{}/exe", supervisor.pid));
    folder.remove(REFUSED);
    write(folder, UNFINISHED, binary.as_os_str().as_bytes())?;
    folder.rename(UNFINISHED, WISH)?;
    let asked = Instant::now();
    while asked.elapsed() < PATIENCE {
        if !folder.has(WISH) && identity(&runs) == Ok(wanted) {
            return Ok(());
        }
        if let Ok(why) = read(folder, REFUSED) {
            folder.remove(REFUSED);
            return Err(Error::NotUpgraded(name(), String::from_utf8_lossy(&why).into()));
        }
        // It is woken by it, and passes it on to nobody.
        if pidfd_send_signal(&pidfd, Signal::CHILD).is_err() || !supervisor.is_alive() {
            folder.remove(WISH);
            return Err(Error::NotRunning(name()));
        }
        std::thread::sleep(PULSE);
    }
    folder.remove(WISH);
    Err(Error::NotUpgraded(name(), "its supervisor does not answer".into()))
}

impl Supervisor {
    /// Goes over to another outlast if that is wished, and nothing else is under way.
    pub(crate) fn on_wish_to_upgrade(&mut self) {
        let is_settled = matches!(self.handover, Handover::None)
            && self.recovering.is_none()
            && self.postponed.is_none()
            && self.pid > 0;
        if !is_settled || !self.folder.has(WISH) {
            return;
        }
        let wish = read(&self.folder, WISH);
        self.folder.remove(WISH);
        let Err(why) = wish.map_err(|e| e.to_string()).and_then(|path| {
            let file = fit(Path::new(OsStr::from_bytes(&path)))?;
            self.end_keeping();
            Err::<(), _>(format!("it cannot be executed: {}", again::upgrade(&file)))
        }) else {
            return;
        };
        // Nobody may be there any more who wants to know.
        let _ = write(&self.folder, REFUSED, why.as_bytes());
    }
}

/// The other outlast, if it may take over.
fn fit(path: &Path) -> Result<OwnedFd, String> {
    let file = open(path, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY, Mode::empty());
    let file = file.map_err(|e| format!("{}: {e}", path.display()))?;
    let stat = fstat(&file).map_err(|e| e.to_string())?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(format!("{} is no file", path.display()));
    }
    if ![0, geteuid().as_raw()].contains(&stat.st_uid) || stat.st_mode & 0o022 != 0 {
        return Err(format!("others may write to {}; chown, chmod go-w", path.display()));
    }
    match spoken(&file, path)? {
        layout::VERSION => Ok(file),
        other => Err(format!(
            "{} speaks layout {other}, the engine in the program {}; it can take over when the program is started anew",
            path.display(),
            layout::VERSION
        )),
    }
}

/// Which layout that outlast speaks: the one that was looked at, whatever its path names by now.
fn spoken(file: &OwnedFd, path: &Path) -> Result<u32, String> {
    let mut command = Command::new(format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()));
    command.arg(COMMAND).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut asked = command.spawn().map_err(|e| format!("{}: {e}", path.display()))?;
    let mut answer = [0; 64];
    let len =
        asked.stdout.as_mut().map_or(0, |out| match poll(&mut [PollFd::new(out, PollFlags::IN)], Some(&ANSWER)) {
            Ok(1) => out.read(&mut answer).unwrap_or(0),
            _ => 0,
        });
    // It has said what it had to say, or will not.
    let _ = asked.kill();
    let _ = asked.wait();
    let text = std::str::from_utf8(&answer[..len]).ok();
    let number = text.and_then(|text| text.strip_prefix(SAYS)?.trim_end().parse().ok());
    number.ok_or_else(|| format!("{} does not say which layout it speaks", path.display()))
}
