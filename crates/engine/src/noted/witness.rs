//! Calls that leave a state behind: names, addresses, connections. A look before the call goes into the note; after a
//! death a second look tells whether it happened. Where the state was there before, the call fails without effect.

use super::note::note;
pub use super::note::WORDS;
use super::{asked, socket};
use crate::dispatch::Call;
use crate::sys::{err, nr, syscall};
use crate::user;
use core::sync::atomic::Ordering::Relaxed;
use outlast_calls::{Place, Witness};

const AT_FDCWD: i64 = -100;
const AT_SYMLINK_NOFOLLOW: u64 = 0x100;
const AT_SYMLINK_FOLLOW: u64 = 0x400;
const AT_EMPTY_PATH: u64 = 0x1000;
const RENAME_EXCHANGE: u64 = 2;
const S_IFMT: u32 = 0o170000;
const S_IFREG: u32 = 0o100000;
const PATH_MAX: usize = 4096;

/// Device and inode; zeroes: nothing there.
type Identity = [u64; 2];
const ABSENT: Identity = [0; 2];

/// What is to be seen of the call's effect.
type Look = [u64; WORDS];

/// Can a second look tell?
pub fn can_tell(call: &Call, witness: Witness) -> bool {
    match witness {
        // A session belongs to the process and dies with it.
        Witness::None | Witness::Leader => false,
        Witness::AttributeRemoved { .. } | Witness::AttributeMade { .. } => question(call.nr).is_some(),
        _ => true,
    }
}

/// Notes what is to be seen before the call.
pub fn note_before(call: &Call, witness: Witness) {
    for (word, value) in note().words.iter().zip(look(call, witness)) {
        word.store(value, Relaxed);
    }
}

/// Did it happen since `note_before`?
pub fn happened(call: &Call, witness: Witness) -> bool {
    let mut before: Look = [0; WORDS];
    for (value, word) in before.iter_mut().zip(&note().words) {
        *value = word.load(Relaxed);
    }
    let now = look(call, witness);
    let pair = |look: &Look, i: usize| [look[i], look[i + 1]];
    match witness {
        Witness::Created(_) => {
            let made = pair(&before, 0) == ABSENT && pair(&now, 0) != ABSENT;
            // A link has the inode of what it links to, a symbolic link its text: nobody else's will do.
            made && match call.nr {
                nr::LINK | nr::LINKAT => pair(&now, 0) == pair(&before, 2),
                nr::SYMLINK | nr::SYMLINKAT => links_as_wanted(call),
                _ => true,
            }
        }
        Witness::Removed(_) => pair(&before, 0) != ABSENT && pair(&now, 0) != pair(&before, 0),
        Witness::Moved { .. } => {
            let (from, to) = (pair(&before, 0), pair(&before, 2));
            let exchange = call.nr == nr::RENAMEAT2 && call.args[4] & RENAME_EXCHANGE != 0;
            let gone = if exchange { pair(&now, 0) == to } else { pair(&now, 0) != from };
            from != ABSENT && from != to && pair(&now, 2) == from && gone
        }
        Witness::Moving => pair(&now, 0) != pair(&before, 0),
        Witness::AttributeRemoved { .. }
        | Witness::Connected
        | Witness::Bound
        | Witness::Sealed
        | Witness::Member
        | Witness::Option => now[0] != before[0],
        Witness::AttributeMade { .. } => before[0] == 0 && now[0] != 0,
        Witness::Shut => before[0] != 0 && now[0] == 0,
        Witness::None | Witness::Leader => false,
    }
}

/// Is what was created an empty file still?
pub fn is_empty_file(call: &Call, created: Witness) -> bool {
    let Witness::Created(place) = created else { return false };
    stat(call, place, AT_SYMLINK_NOFOLLOW).is_some_and(|stat| stat[3] as u32 & S_IFMT == S_IFREG && stat[6] == 0)
}

/// Has the socket a peer for good? A datagram socket may be given another at any time.
pub fn is_connected(fd: i32) -> bool {
    const SOCK_STREAM: u32 = 1;
    const SOCK_SEQPACKET: u32 = 5;
    socket::kind(fd).is_some_and(|kind| kind == SOCK_STREAM || kind == SOCK_SEQPACKET)
        && address(nr::GETPEERNAME, fd).is_some()
}

/// What is to be seen now of the call's effect.
pub fn look(call: &Call, witness: Witness) -> Look {
    let mut look: Look = [0; WORDS];
    match witness {
        Witness::Created(place) => {
            look[..2].copy_from_slice(&identity(call, place, AT_SYMLINK_NOFOLLOW));
            look[2..4].copy_from_slice(&link_source(call));
        }
        Witness::Removed(place) => look[..2].copy_from_slice(&identity(call, place, AT_SYMLINK_NOFOLLOW)),
        Witness::Moved { from, to } => {
            look[..2].copy_from_slice(&identity(call, from, AT_SYMLINK_NOFOLLOW));
            look[2..4].copy_from_slice(&identity(call, to, AT_SYMLINK_NOFOLLOW));
        }
        Witness::AttributeRemoved { name, .. } | Witness::AttributeMade { name, .. } => {
            if let Some(number) = question(call.nr) {
                // SAFETY: with length 0 nothing is written.
                look[0] = unsafe { !err::is(syscall!(number, call.args[0], call.args[name as usize], 0, 0)) } as u64;
            }
        }
        Witness::Moving => look[..2].copy_from_slice(&working_directory()),
        Witness::Connected => look[0] = u64::from(address(nr::GETPEERNAME, call.fd()).is_some()),
        Witness::Bound => look[0] = address(nr::GETSOCKNAME, call.fd()).unwrap_or(0),
        Witness::Sealed => look[0] = asked::seals(call.fd()),
        Witness::Member => look[0] = asked::membership(call),
        Witness::Option => look[0] = asked::option(call),
        Witness::Shut => {
            look[0] = u64::from(socket::listens(call.fd()) || address(nr::GETPEERNAME, call.fd()).is_some())
        }
        Witness::None | Witness::Leader => {}
    }
    look
}

fn identity(call: &Call, place: Place, flags: u64) -> Identity {
    stat(call, place, flags).map_or(ABSENT, |stat| [stat[0], stat[1]])
}

/// `struct stat` of what is there.
fn stat(call: &Call, place: Place, flags: u64) -> Option<[u64; 18]> {
    let dir = place.dir.map_or(AT_FDCWD as u64, |i| call.args[i as usize]);
    let path = place.path?;
    let mut stat = [0u64; 18];
    // SAFETY: the kernel checks the path; newfstatat writes 144 bytes.
    let r = unsafe { syscall!(nr::NEWFSTATAT, dir, call.args[path as usize], stat.as_mut_ptr(), flags) };
    (r == 0).then_some(stat)
}

fn working_directory() -> Identity {
    let mut stat = [0u64; 18];
    // SAFETY: newfstatat writes 144 bytes.
    let r = unsafe { syscall!(nr::NEWFSTATAT, AT_FDCWD, c"".as_ptr(), stat.as_mut_ptr(), AT_EMPTY_PATH) };
    if r == 0 {
        [stat[0], stat[1]]
    } else {
        ABSENT
    }
}

/// What a hard link is made to.
fn link_source(call: &Call) -> Identity {
    match call.nr {
        nr::LINK => identity(call, Place::path(0), AT_SYMLINK_NOFOLLOW),
        nr::LINKAT => {
            let follow = if call.args[4] & AT_SYMLINK_FOLLOW != 0 { 0 } else { AT_SYMLINK_NOFOLLOW };
            identity(call, Place::at(0, 1), follow | call.args[4] & AT_EMPTY_PATH)
        }
        _ => ABSENT,
    }
}

/// Does the symbolic link hold the text that the call gives it?
fn links_as_wanted(call: &Call) -> bool {
    let (dir, path) = match call.nr {
        nr::SYMLINK => (AT_FDCWD as u64, call.args[1]),
        _ => (call.args[1], call.args[2]),
    };
    let (mut text, mut wanted) = ([0u8; PATH_MAX], [0u8; PATH_MAX]);
    // SAFETY: the kernel checks the path and writes into the buffer.
    let n = unsafe { syscall!(nr::READLINKAT, dir, path, text.as_mut_ptr(), PATH_MAX) };
    let Ok(n) = usize::try_from(n) else { return false };
    n < PATH_MAX && user::read_bytes(call.args[0], &mut wanted[..n + 1]) && wanted[..n] == text[..n] && wanted[n] == 0
}

/// The call that asks for an attribute that `number` makes or removes.
fn question(number: u64) -> Option<u64> {
    match number {
        nr::REMOVEXATTR | nr::SETXATTR => Some(nr::GETXATTR),
        nr::LREMOVEXATTR | nr::LSETXATTR => Some(nr::LGETXATTR),
        nr::FREMOVEXATTR | nr::FSETXATTR => Some(nr::FGETXATTR),
        _ => None,
    }
}

/// A checksum of the socket's own or its peer's address; `None` if it has none.
fn address(number: u64, fd: i32) -> Option<u64> {
    let (mut name, mut len) = ([0u8; 128], 128u32);
    // SAFETY: the kernel writes at most 128 bytes and the length.
    let r = unsafe { syscall!(number, fd, name.as_mut_ptr(), &raw mut len) };
    (r == 0).then(|| checksum(name[..len.min(128) as usize].iter()))
}

/// FNV-1a.
pub fn checksum<'a>(bytes: impl Iterator<Item = &'a u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |h, &b| (h ^ b as u64).wrapping_mul(0x100_0000_01b3))
}
