//! `--commit manual`: calls that others see are made with no commit before them. A recovery goes back to the last commit that
//! was asked for; what the program wrote since is written again, what it read since is gone.

use super::{input, offsets};
use crate::dispatch::{interruptible, Call};
use crate::state::Engine;
use crate::sys::nr;
use crate::thread::Thread;
use outlast_image::inject::option;

/// Is the program one that commits only when asked?
pub fn chosen(e: &Engine) -> bool {
    e.args.options & option::NO_VISIBLE != 0
}

/// Makes the call; what a rollback has to undo of it is noted.
pub fn serve(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    offsets::note_moved(e, call);
    let r = interruptible(t, call);
    match call.nr {
        nr::OPEN | nr::OPENAT | nr::OPENAT2 | nr::CREAT | nr::ACCEPT | nr::ACCEPT4 => e.fds.opened(r),
        nr::RECVMSG if r >= 0 => input::note_received_descriptors(e, call.args[1]),
        nr::RECVMMSG => {
            for n in 0..r.max(0) as u64 {
                input::note_received_descriptors(e, call.args[1] + n * input::MESSAGE_LEN);
            }
        }
        _ => {}
    }
    r
}
