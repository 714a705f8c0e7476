//! What children begin with, made before there are any: folders with an empty session and an empty store, whose descriptors wait in a
//! socket.

use super::kindred::Kindred;
use crate::error::Error;
use crate::program_folder::{Lock, ProgramFolder};
use crate::session::Session;
use crate::stores::StorePlace;
use crate::supervisor::Supervisor;
use rustix::event::{poll, PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{sendmsg, SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
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

/// Those that wait, or were received by a parent that has not made its child yet.
pub struct Ready {
    ours: OwnedFd,
    pub kindred: Rc<Kindred>,
    waiting: Vec<Begun>,
    /// Those of an earlier supervisor, which wait no more; but a parent may have received one.
    earlier: Vec<Begun>,
    next: u32,
}

impl Ready {
    pub fn new((ours, kindred): (OwnedFd, Kindred)) -> Self {
        Self { ours, kindred: Rc::new(kindred), waiting: Vec::new(), earlier: Vec::new(), next: 1 }
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
            self.earlier.push(begun);
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
        self.waiting.iter().chain(&self.earlier).any(|begun| begun.number == number)
    }

    /// A child has begun with it.
    pub fn take(&mut self, number: u32) -> Option<Begun> {
        let remove =
            |from: &mut Vec<Begun>| from.iter().position(|begun| begun.number == number).map(|i| from.remove(i));
        remove(&mut self.waiting).or_else(|| remove(&mut self.earlier))
    }

    /// No child will need any.
    pub fn clear(&mut self) {
        for begun in self.waiting.drain(..).chain(self.earlier.drain(..)) {
            // What cannot be removed goes with the program's folder.
            let _ = begun.folder.clear();
        }
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
