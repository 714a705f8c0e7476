//! What all engines of a tree have in common, and how a supervisor that takes over reaches them by it.

use crate::processes;
use crate::program_folder::ProgramFolder;
use crate::supervisor::Supervisor;
use outlast_image::layout::{own_fd, GROUP_LEN};
use rustix::fs::{fcntl_get_seals, fstat, ftruncate, memfd_create, MemfdFlags};
use rustix::io::Errno;
use rustix::net::sockopt::{socket_domain, socket_type};
use rustix::net::{
    bind, connect, getsockname, socket_with, socketpair, AddressFamily, SocketAddrUnix, SocketFlags, SocketType,
};
use std::os::fd::{AsRawFd, OwnedFd};

/// Names that the two ends have in the program's folder: one that a supervisor sends from, as long as that takes, and the engines', from the first
/// that took over on.
const SENDER: &str = "births.from";
const RECEIVER: &str = "births";

const FLAGS: SocketFlags = SocketFlags::CLOEXEC.union(SocketFlags::NONBLOCK);

/// What all engines of a tree have.
pub struct Kindred {
    /// Where they receive what their children begin with. Datagrams: they wait there for whoever sends some, also when the sender has died.
    pub births: OwnedFd,
    /// What they know of each other's writes.
    pub group: OwnedFd,
}

impl Kindred {
    /// For a tree that begins; with the end from which is sent to them.
    pub fn new() -> Result<(OwnedFd, Self), Errno> {
        let (ours, births) = socketpair(AddressFamily::UNIX, SocketType::DGRAM, FLAGS, None)?;
        let group = memfd_create(c"outlast-group", MemfdFlags::CLOEXEC)?;
        ftruncate(&group, GROUP_LEN)?;
        Ok((ours, Self { births, group }))
    }

    /// For one whose supervisor has died, as far as the program lets us have what its engines have: a process whose engine has something else
    /// gets this at its next execve.
    pub fn again(supervisor: &Supervisor) -> Result<(OwnedFd, Self), Errno> {
        let (mut ours, mut kindred) = Self::new()?;
        let theirs = |number: i32| supervisor.own_descriptor(number);
        if let Some(group) = theirs(own_fd::GROUP).filter(is_group) {
            kindred.group = group;
        }
        if let Some(births) = theirs(own_fd::CHILDREN) {
            if let Ok(sender) = reach(&supervisor.folder, &births) {
                (ours, kindred.births) = (sender, births);
            }
        }
        Ok((ours, kindred))
    }
}

impl Supervisor {
    /// A copy of one of the engine's descriptors.
    fn own_descriptor(&self, number: i32) -> Option<OwnedFd> {
        let first = self.generation.session.inject_args().session_fd - own_fd::SESSION;
        // The anchor has the same.
        let holder = if self.pid > 0 { self.pid } else { self.anchor };
        processes::descriptor_of(holder, first + number).ok()
    }
}

fn is_group(file: &OwnedFd) -> bool {
    fstat(file).is_ok_and(|stat| stat.st_size as u64 == GROUP_LEN) && fcntl_get_seals(file).is_ok()
}

/// An end from which is sent to a socket whose other end is gone. Nobody else can send there: at every moment it has a peer, and who was told
/// of its name must be allowed to enter the program's folder. What waits there is lost.
fn reach(folder: &ProgramFolder, births: &OwnedFd) -> Result<OwnedFd, Errno> {
    // That of an older outlast is a pair for good.
    if (socket_domain(births)?, socket_type(births)?) != (AddressFamily::UNIX, SocketType::DGRAM) {
        return Err(Errno::OPNOTSUPP);
    }
    let at = |name: &str| SocketAddrUnix::new(format!("/proc/self/fd/{}/{name}", folder.dir().as_raw_fd()));
    let ours = socket_with(AddressFamily::UNIX, SocketType::DGRAM, FLAGS, None)?;
    folder.remove(SENDER);
    bind(&ours, &at(SENDER)?)?;
    let turned = connect(births, &at(SENDER)?);
    folder.remove(SENDER);
    turned?;
    let is_named = SocketAddrUnix::try_from(getsockname(births)?)?.path().is_some();
    if !is_named {
        folder.remove(RECEIVER);
        bind(births, &at(RECEIVER)?)?;
    }
    connect(&ours, &at(RECEIVER)?)?;
    Ok(ours)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state_folder::StateFolder;
    use rustix::net::{recv, send, RecvFlags, SendFlags};
    use std::path::Path;

    #[test]
    fn one_supervisor_after_the_other_reaches_the_engines() {
        let home = tempfile::tempdir_in("/dev/shm").unwrap();
        let state = StateFolder::open_at(home.path().join("state")).unwrap();
        let (folder, _lock) = state.create(Some("it"), Path::new("it")).unwrap();
        let (first, Kindred { births, .. }) = Kindred::new().unwrap();
        let receive = || {
            let mut text = [0; 16];
            recv(&births, &mut text, RecvFlags::DONTWAIT).map(|(length, _)| text[..length].to_vec())
        };
        send(&first, b"first", SendFlags::NOSIGNAL).unwrap();
        assert_eq!(receive(), Ok(b"first".to_vec()));
        drop(first);
        assert_eq!(receive(), Err(Errno::AGAIN), "engines wait for the next one");
        for name in [b"second".to_vec(), b"third".to_vec()] {
            let sender = reach(&folder, &births).unwrap();
            send(&sender, &name, SendFlags::NOSIGNAL).unwrap();
            assert_eq!(receive(), Ok(name));
            // A stranger with the right to enter the folder is none of those who may send.
            let stranger = socket_with(AddressFamily::UNIX, SocketType::DGRAM, FLAGS, None).unwrap();
            let path = SocketAddrUnix::new(folder.path().join(RECEIVER)).unwrap();
            assert_eq!(connect(&stranger, &path), Err(Errno::PERM));
        }
    }

    #[test]
    fn a_pair_of_an_older_outlast_is_left_alone() {
        let home = tempfile::tempdir_in("/dev/shm").unwrap();
        let state = StateFolder::open_at(home.path().join("state")).unwrap();
        let (folder, _lock) = state.create(Some("it"), Path::new("it")).unwrap();
        let (_ours, births) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, FLAGS, None).unwrap();
        assert_eq!(reach(&folder, &births).unwrap_err(), Errno::OPNOTSUPP);
    }
}
