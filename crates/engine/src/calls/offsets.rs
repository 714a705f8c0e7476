//! The offsets of files: a rollback sets back those that moved since the commit.

use crate::commit::commit_before_call;
use crate::dispatch::Call;
use crate::state::{journal, Engine};
use crate::sys::{err, nr, syscall};
use outlast_image::descriptor::descriptor_kind as kind;

/// Instead of a position: where the offset is.
const AT_OFFSET: u64 = !0;
const SEEK_CUR: u64 = 1;

/// Does the read or write begin where the offset is, and move it?
pub fn is_at_offset(call: &Call) -> bool {
    match call.nr {
        nr::READ | nr::READV | nr::WRITE | nr::WRITEV => true,
        nr::PREADV2 | nr::PWRITEV2 => call.args[3] == AT_OFFSET,
        _ => false,
    }
}

/// The descriptors whose offsets the call moves.
fn moved(call: &Call) -> [Option<i32>; 2] {
    let a = call.args;
    // Without an address that holds a position it is the offset that counts.
    let unless = |position: u64, fd: u64| (position == 0).then_some(fd as i32);
    match call.nr {
        nr::SENDFILE => [Some(a[0] as i32), unless(a[2], a[1])],
        nr::COPY_FILE_RANGE | nr::SPLICE => [unless(a[1], a[0]), unless(a[3], a[2])],
        _ => [is_at_offset(call).then_some(a[0] as i32), None],
    }
}

/// Notes the offsets that the call is about to move. To be called after the commit that stands before the call.
pub fn note_moved(e: &mut Engine, call: &Call) {
    for fd in moved(call).into_iter().flatten() {
        if matches!(e.fds.kind(fd), kind::REGULAR | kind::DIRECTORY | kind::BLOCK) {
            note(e, fd);
        }
    }
}

/// Notes the offset of a file before its first change since the commit.
pub fn note(e: &mut Engine, fd: i32) {
    let seq = e.store().seq();
    if e.fds.note_offset(fd, seq) {
        // SAFETY: lseek(fd, 0, SEEK_CUR) has no effect.
        let old = unsafe { syscall!(nr::LSEEK, fd, 0, SEEK_CUR) };
        if !err::is(old) {
            let entry = [fd as i64, old];
            let noted = e.store().journal_append(journal::OFFSET, bytemuck::bytes_of(&entry)).is_ok();
            if !noted && commit_before_call(e) != 0 {
                note(e, fd);
            }
        }
    }
}
