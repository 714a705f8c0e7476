//! The state that tells, after a death and without io_uring, whether a call happened.

/// A name: the argument with the directory's descriptor (none: the working directory) and the one with the path (none:
/// the descriptor itself is meant).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub dir: Option<u8>,
    pub path: Option<u8>,
}

impl Place {
    /// The path in an argument, from the working directory.
    pub const fn path(path: u8) -> Place {
        Place { dir: None, path: Some(path) }
    }

    /// The path in the second argument, from the directory whose descriptor is in the first.
    pub const fn at(dir: u8, path: u8) -> Place {
        Place { dir: Some(dir), path: Some(path) }
    }

    /// The file behind a descriptor.
    pub const fn descriptor(fd: u8) -> Place {
        Place { dir: Some(fd), path: None }
    }
}

/// What to look at. Each tells only together with the same look taken before the call: where the state was already
/// there before, the call fails without effect and may be issued again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Witness {
    /// Nothing to look at, or nothing needed.
    None,
    /// The name exists.
    Created(Place),
    /// The name exists no more.
    Removed(Place),
    /// The new name has the inode that the old one had.
    Moved { from: Place, to: Place },
    /// The working directory is another one.
    Moving,
    /// The extended attribute named in argument `name` is gone.
    AttributeRemoved { of: Place, name: u8 },
    /// The extended attribute named in argument `name` is there.
    AttributeMade { of: Place, name: u8 },
    /// F_GET_SEALS answers otherwise.
    Sealed,
    /// The socket's part in a multicast group is another one: how many sources it knows there, if it is a member.
    Member,
    /// getsockopt answers otherwise.
    Option,
    /// getsockname answers with an address of its own.
    Bound,
    /// getpeername answers, or the socket holds an error (SO_ERROR).
    Connected,
    /// The socket has no peer any more, and waits for none. What has one still can be shut again.
    Shut,
    /// The process is the leader of its session.
    Leader,
}
