//! What a call changes of a file: which one, and which of its bytes.

use super::look;
use crate::calls::message::Vectors;
use crate::calls::offsets::is_at_offset;
use crate::calls::write_file::appends;
use crate::dispatch::Call;
use crate::state::Engine;
use crate::sys::{nr, syscall};
use crate::user;
use outlast_image::descriptor::descriptor_kind as kind;

const AT_FDCWD: i64 = -100;
const SEEK_CUR: u64 = 1;
const F_GETFL: u64 = 3;
pub const O_APPEND: i64 = 0o2000;
const O_TRUNC: u64 = 0o1000;
const PUNCH_HOLE_ZERO_RANGE: u64 = 0x02 | 0x10;
const COLLAPSE_INSERT: u64 = 0x08 | 0x20;

/// The bytes of a file that a call changes.
pub struct Change {
    pub from: u64,
    pub to: u64,
    /// The file ends there afterwards.
    pub cuts: bool,
}

/// The descriptor of the file that the call writes to.
pub fn target(call: &Call) -> Option<i32> {
    match call.nr {
        nr::WRITE
        | nr::WRITEV
        | nr::PWRITE64
        | nr::PWRITEV
        | nr::PWRITEV2
        | nr::SENDFILE
        | nr::FTRUNCATE
        | nr::FALLOCATE => Some(call.fd()),
        nr::SPLICE | nr::COPY_FILE_RANGE => Some(call.args[2] as i32),
        _ => None,
    }
}

/// A file, named by a path from a folder, that is cut off at a size.
pub type Cut = (i64, u64, u64);

/// What the call cuts off by its path.
pub fn cut(call: &Call) -> Option<Cut> {
    let a = &call.args;
    let opened = |dir: u64, path: u64, flags: u64| (flags & O_TRUNC != 0).then_some((dir as i64, path, 0));
    match call.nr {
        nr::TRUNCATE => Some((AT_FDCWD, a[0], a[1])),
        nr::CREAT => Some((AT_FDCWD, a[0], 0)),
        nr::OPEN => opened(AT_FDCWD as u64, a[0], a[1]),
        nr::OPENAT => opened(a[0], a[1], a[2]),
        nr::OPENAT2 => opened(a[0], a[1], user::read::<u64>(a[2])?),
        _ => None,
    }
}

/// Does the call change a file, which takes no waiting?
pub fn is_quick(e: &mut Engine, call: &Call) -> bool {
    let is_regular = |(dir, path, _): Cut| look::through(dir, path as *const u8).is_ok_and(|look| look.is_regular());
    target(call).is_some_and(|fd| e.fds.kind(fd) == kind::REGULAR) || cut(call).is_some_and(is_regular)
}

/// What the call changes of a file of `size` bytes.
pub fn change(call: &Call, fd: i32, size: u64) -> Change {
    let a = &call.args;
    let len = match call.nr {
        nr::WRITE | nr::PWRITE64 => a[2],
        nr::WRITEV | nr::PWRITEV | nr::PWRITEV2 => length_of(a[1], a[2]),
        nr::SENDFILE => a[3],
        _ => a[4],
    };
    let range = |from: u64| Change { from, to: from.saturating_add(len), cuts: false };
    let by_pointer = |at: u64| if at == 0 { offset(fd) } else { user::read::<u64>(at).unwrap_or(0) };
    match call.nr {
        nr::FTRUNCATE => Change { from: a[1], to: u64::MAX, cuts: true },
        nr::FALLOCATE if a[1] & COLLAPSE_INSERT != 0 => Change { from: a[2], to: u64::MAX, cuts: false },
        nr::FALLOCATE if a[1] & PUNCH_HOLE_ZERO_RANGE != 0 => {
            Change { from: a[2], to: a[2].saturating_add(a[3]), cuts: false }
        }
        nr::FALLOCATE => Change { from: 0, to: 0, cuts: false },
        nr::SPLICE | nr::COPY_FILE_RANGE => range(by_pointer(a[3])),
        _ if appends(call) => range(size),
        nr::SENDFILE => range(offset(fd)),
        _ if is_at_offset(call) => range(offset(fd)),
        _ => range(a[3]),
    }
}

/// How `fd` was opened.
pub fn flags_of(fd: i32) -> i64 {
    // SAFETY: F_GETFL has no effect.
    unsafe { syscall!(nr::FCNTL, fd, F_GETFL) }
}

fn offset(fd: i32) -> u64 {
    // SAFETY: lseek(fd, 0, SEEK_CUR) has no effect.
    unsafe { syscall!(nr::LSEEK, fd, 0, SEEK_CUR) }.max(0) as u64
}

/// The total length of a list of buffers.
fn length_of(at: u64, count: u64) -> u64 {
    Vectors::new(at, count).map_or(0, |v| v.total)
}
