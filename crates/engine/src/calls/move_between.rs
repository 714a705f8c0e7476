//! sendfile and copy_file_range where both sides are files, and splice where there is no ring: from one descriptor to
//! another.
//!
//! A rollback sets the offsets back, so that the same bytes go to the same place again.

use super::offsets;
use crate::commit::{commit, commit_at_gate};
use crate::control::phase;
use crate::dispatch::{interruptible, Call};
use crate::state::Engine;
use crate::sys::{err, nr};
use crate::thread::Thread;
use crate::tracker::Track;
use outlast_image::context::pending_kind;
use outlast_image::event::phase as at;

/// Commits before, so that nothing is moved that was never seen, and after, so that what a pipe gave is not asked for
/// again.
pub fn serve(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    if commit(e, call.pending(pending_kind::REDO)) == 0 {
        return interruptible(t, call);
    }
    offsets::note_moved(e, call);
    phase(at::OPERATION);
    let r = interruptible(t, call);
    if r == err::EINTR && t.interrupted != 0 {
        return r;
    }
    let target = if call.nr == nr::SENDFILE { call.args[0] } else { call.args[2] };
    if e.fds.is_memory(target as i32) {
        e.tracker.written_behind();
    }
    t.regs.rax = r as u64;
    commit_at_gate(e);
    phase(at::COMPLETED);
    r
}
