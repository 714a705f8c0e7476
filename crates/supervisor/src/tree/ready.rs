//! What children begin with, made before there are any: folders with an empty session and an empty store, whose descriptors wait in a
//! socket.

use crate::error::Error;
use crate::processes;
use crate::program_folder::{Lock, ProgramFolder};
use crate::session::Session;
use crate::stores::StorePlace;
use crate::supervisor::Supervisor;
use outlast_image::layout::{own_fd, GROUP_LEN};
use rustix::event::{poll, PollFd, PollFlags};
use rustix::fs::{fcntl_get_seals, fstat, ftruncate, memfd_create, MemfdFlags};
use rustix::io::Errno;
use rustix::net::{
    sendmsg, socketpair, AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};
use rustix::time::Timespec;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;

/// How many wait.
const WAITING: usize = 3;

/// What one child begins with.
pub struct Begun {
    pub number: u32,
    pub folder: ProgramFolder,
    pub lock: Lock,
    pub stores: StorePlace,
    pub session: Session,
    pub store: OwnedFd,
}

/// What all engines of a tree have.
pub struct Kindred {
    /// Where they receive what their children begin with.
    pub births: OwnedFd,
    /// What they know of each other's writes.
    pub group: OwnedFd,
}

/// Those that wait, or were received by a parent that has not made its child yet.
pub struct Ready {
    ours: OwnedFd,
    pub kindred: Rc<Kindred>,
    waiting: Vec<Begun>,
    next: u32,
}

impl Ready {
    /// `group`: what an earlier supervisor has given to them.
    pub fn new(group: Option<OwnedFd>) -> Result<Self, Errno> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (ours, births) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        let group = match group {
            Some(group) => group,
            None => {
                let made = memfd_create(c"outlast-group", MemfdFlags::CLOEXEC)?;
                ftruncate(&made, GROUP_LEN)?;
                made
            }
        };
        let kindred = Rc::new(Kindred { births, group });
        Ok(Self { ours, kindred, waiting: Vec::new(), next: 1 })
    }

    /// Has enough of them wait. What cannot be made now is tried for when somebody needs it next.
    pub fn provide(&mut self, root: &Supervisor) {
        while self.waiting.len() < WAITING || self.is_empty() {
            let Ok(begun) = Begun::make(&root.folder, self.next) else { return };
            if send(&self.ours, &begun).is_err() {
                let _ = begun.folder.clear();
                return;
            }
            self.next += 1;
            self.waiting.push(begun);
        }
    }

    /// One that an earlier supervisor has sent.
    pub fn keep(&mut self, begun: Option<Begun>) {
        if let Some(begun) = begun {
            self.next = self.next.max(begun.number + 1);
            self.waiting.push(begun);
        }
    }

    /// Numbers up to this one are taken.
    pub fn begin_after(&mut self, number: u32) {
        self.next = self.next.max(number + 1);
    }

    fn is_empty(&self) -> bool {
        let mut fds = [PollFd::new(&self.kindred.births, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec::default())) == Ok(0)
    }

    pub fn has(&self, number: u32) -> bool {
        self.waiting.iter().any(|begun| begun.number == number)
    }

    /// A child has begun with it.
    pub fn take(&mut self, number: u32) -> Option<Begun> {
        let i = self.waiting.iter().position(|begun| begun.number == number)?;
        Some(self.waiting.remove(i))
    }

    /// No child will need any.
    pub fn clear(&mut self) {
        for begun in self.waiting.drain(..) {
            // What cannot be removed goes with the program's folder.
            let _ = begun.folder.clear();
        }
    }
}

impl Supervisor {
    /// What an earlier supervisor has given the tree's processes to know of each other's writes, if the program lets us have it.
    pub(super) fn group_of_tree(&self) -> Option<OwnedFd> {
        let first = self.generation.session.inject_args().session_fd - own_fd::SESSION;
        // The anchor has the same descriptors.
        let holder = if self.pid > 0 { self.pid } else { self.anchor };
        let file = processes::descriptor_of(holder, first + own_fd::GROUP).ok()?;
        let is_it = fstat(&file).is_ok_and(|stat| stat.st_size as u64 == GROUP_LEN) && fcntl_get_seals(&file).is_ok();
        is_it.then_some(file)
    }
}

impl Begun {
    fn make(root: &ProgramFolder, number: u32) -> Result<Self, Error> {
        let folder = root.create_folder(&format!("child.{number}"))?;
        let lock = folder.lock()?.ok_or_else(|| Error::Running(folder.name().into()))?;
        let stores = StorePlace::beside(&folder)?;
        let session = folder.create_session("session")?;
        let store = stores.create(0)?;
        Ok(Self { number, folder, lock, stores, session, store })
    }
}

fn send(socket: &OwnedFd, begun: &Begun) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = [begun.session.file(), begun.store.as_fd()];
    assert!(control.push(SendAncillaryMessage::ScmRights(&descriptors)), "the buffer has room for them");
    sendmsg(socket, &[IoSlice::new(&begun.number.to_ne_bytes())], &mut control, SendFlags::NOSIGNAL).map(drop)
}
