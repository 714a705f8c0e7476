//! Writes to files take no ring: the offset before the call goes into the journal of the commit, so a restored process
//! writes the same bytes to the same place again. For appends the size before the call tells what happened.

use super::message::{self, Vectors};
use super::offsets;
use crate::commit::commit;
use crate::control::phase;
use crate::dispatch::{interruptible, native, Call};
use crate::mutant::without;
use crate::shared_files;
use crate::state::Engine;
use crate::sys::{nr, syscall};
use crate::thread::Thread;
use crate::tracker::Track;
use outlast_image::context::{pending_kind, PendingCall};
use outlast_image::event::phase as at;
use outlast_image::mutant::Mutant;

const F_GETFL: u64 = 3;
const O_APPEND: i64 = 0o2000;
const RWF_APPEND: u64 = 0x10;
const RWF_NOAPPEND: u64 = 0x20;
const SEEK_SET: u64 = 0;

pub fn serve(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    if shared_files::moves(e, call) {
        return shared_files::alone(e, t, |e, t| write(e, t, call));
    }
    write(e, t, call)
}

fn write(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    let mut pending = call.pending(pending_kind::REDO);
    let appends = appends(call);
    if appends {
        pending.kind = pending_kind::OFFSET;
        pending.size = size(call.fd());
    }
    if commit(e, pending) == 0 {
        return interruptible(t, call);
    }
    if !appends {
        offsets::note_moved(e, call);
    }
    phase(at::OPERATION);
    let r = native(call);
    phase(at::COMPLETED);
    if e.fds.is_memory(call.fd()) {
        e.tracker.written_behind();
    }
    r
}

/// Does the write go to the end of the file, wherever that is?
pub fn appends(call: &Call) -> bool {
    let flags = if call.nr == nr::PWRITEV2 { call.args[5] } else { 0 };
    // SAFETY: F_GETFL has no effect.
    let always = unsafe { syscall!(nr::FCNTL, call.fd(), F_GETFL) } & O_APPEND != 0;
    flags & RWF_APPEND != 0 || always && flags & RWF_NOAPPEND == 0
}

fn size(fd: i32) -> u64 {
    let mut st = [0u64; 18];
    // SAFETY: fstat writes 144 bytes; st_size is the seventh word.
    unsafe { syscall!(nr::FSTAT, fd, st.as_mut_ptr()) };
    st[6]
}

/// An append that a dead predecessor may have made: the file's size tells how much of it. A death may have cut it short, as nothing
/// else does: the rest follows.
pub fn finish_append(call: &Call, pending: &PendingCall) -> i64 {
    let grown = size(call.fd()).saturating_sub(pending.size);
    let vectors = match call.nr {
        nr::WRITE | nr::PWRITE64 => None,
        _ => Vectors::new(call.args[1], call.args[2]),
    };
    let total = vectors.map_or(call.args[2], |v| v.total);
    if grown == 0 || grown > total || without(Mutant::AppendWitness) {
        return native(call);
    }
    let rest = match vectors {
        None => Some((message::single(call.args[1] + grown, total - grown), 1)),
        Some(v) => v.place(grown),
    };
    let more = match rest {
        // SAFETY: the vectors lie in the bounce buffer; the kernel checks the program's own addresses.
        Some((at, n)) if grown < total => unsafe { syscall!(nr::PWRITEV2, call.fd(), at, n, 0, 0, RWF_APPEND) },
        _ => 0,
    };
    let done = grown + more.max(0) as u64;
    if offsets::is_at_offset(call) {
        // SAFETY: leaves the offset where the append would have.
        unsafe { syscall!(nr::LSEEK, call.fd(), pending.size + done, SEEK_SET) };
    }
    done as i64
}
