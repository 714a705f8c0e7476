//! Executions, held until they are let go.

use crate::process::descriptor;
use displaydoc::Display;
use nix::errno::Errno;
use nix::sys::fanotify::{
    EventFFlags, Fanotify, FanotifyEvent, FanotifyResponse, InitFlags, MarkFlags, MaskFlags, Response,
};
use outlast_supervisor::privileges;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Arc;
use thiserror::Error;

/// Why executions cannot be seen.
#[derive(Debug, Display, Error)]
pub enum Error {
    /// to see programs begin needs root (CAP_SYS_ADMIN); as another user, start them with `outlast run`
    NotRoot,
    /// this kernel does not hold executions (CONFIG_FANOTIFY_ACCESS_PERMISSIONS); start programs with `outlast run`
    NoHolding,
    /// to see programs begin needs Linux 6.8; start them with `outlast run`
    OldKernel,
    /// another outlast daemon runs here
    Taken,
    /// cannot find the file of this program
    NoSelf,
    /// cannot start a thread
    NoThread,
    /// cannot watch the scheduler: {0}
    NoModule(String),
    /// cannot {0}: {1}
    Kernel(&'static str, Errno),
}

/// Where executions are seen.
pub enum Place<'a> {
    /// Of the files in this folder.
    Folder(&'a Path),
    /// Of all files in the file system that is mounted here.
    FileSystem(&'a Path),
}

/// All that are seen.
pub struct Execs(Fanotify);

/// One that waits to be let go, which it is at the latest when this is dropped.
pub struct Held {
    execs: Arc<Execs>,
    event: FanotifyEvent,
    is_let_go: AtomicBool,
}

impl Execs {
    pub fn new() -> Result<Self, Error> {
        // Before that a process that is held cannot be traced: it has the lock that this takes.
        if !privileges::kernel_is_at_least(6, 8) {
            return Err(Error::OldKernel);
        }
        let flags =
            InitFlags::FAN_CLASS_CONTENT | InitFlags::FAN_CLOEXEC | InitFlags::FAN_NONBLOCK | InitFlags::FAN_REPORT_TID;
        let files = EventFFlags::O_RDONLY | EventFFlags::O_CLOEXEC | EventFFlags::O_LARGEFILE;
        match Fanotify::init(flags, files) {
            Ok(group) => Ok(Self(group)),
            Err(Errno::EPERM) => Err(Error::NotRoot),
            Err(Errno::ENOSYS | Errno::EINVAL) => Err(Error::NoHolding),
            Err(e) => Err(Error::Kernel("watch executions", e)),
        }
    }

    /// Sees those of a place from now on, or no longer.
    pub fn mark(&self, place: &Place, is_seen: bool) -> Result<(), Error> {
        let how = if is_seen { MarkFlags::FAN_MARK_ADD } else { MarkFlags::FAN_MARK_REMOVE };
        let (kind, what, path) = match place {
            Place::Folder(path) => (MarkFlags::FAN_MARK_ONLYDIR, MaskFlags::FAN_EVENT_ON_CHILD, path),
            Place::FileSystem(path) => (MarkFlags::FAN_MARK_FILESYSTEM, MaskFlags::empty(), path),
        };
        let marked = self.0.mark(how | kind, MaskFlags::FAN_OPEN_EXEC_PERM | what, rustix::fs::CWD, Some(*path));
        marked.map_err(|e| match e {
            Errno::EINVAL => Error::NoHolding,
            e => Error::Kernel("watch a folder", e),
        })
    }

    /// Readable when there is one.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Those that wait now.
    pub fn held(this: &Arc<Self>) -> Result<Vec<Held>, Errno> {
        match this.0.read_events() {
            Ok(events) => {
                let held = |event| Held { execs: Arc::clone(this), event, is_let_go: AtomicBool::new(false) };
                Ok(events.into_iter().map(held).collect())
            }
            Err(Errno::EAGAIN | Errno::EINTR) => Ok(Vec::new()),
            Err(e) => Err(e),
        }
    }
}

impl Held {
    /// The thread whose process is about to become another program; 0: it is not of this PID namespace.
    pub fn thread(&self) -> libc::pid_t {
        self.event.pid()
    }

    /// The file that is being executed, or opened to execute another one.
    pub fn file(&self) -> Option<BorrowedFd<'_>> {
        self.event.fd()
    }

    /// Its path without links.
    pub fn path(&self) -> Option<PathBuf> {
        std::fs::read_link(descriptor(self.file()?)).ok()
    }

    /// Lets it go; false: it was let go before.
    pub fn let_go(&self) -> bool {
        let is_first = !self.is_let_go.swap(true, Relaxed);
        if let Some(file) = self.event.fd().filter(|_| is_first) {
            // It fails only for one that is not waited for any more, because the process was killed.
            let _ = self.execs.0.write_response(FanotifyResponse::new(file, Response::FAN_ALLOW));
        }
        is_first
    }

    pub fn is_let_go(&self) -> bool {
        self.is_let_go.load(Relaxed)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.let_go();
    }
}
