//! `--commit manual`: calls that others see are made with no commit before them. A recovery goes back to the last commit that
//! was asked for: files are set back and streams are read again, but what was sent since is sent again, and of what was received since
//! datagrams, connections and events are gone.

use super::message::Header;
use super::{input, names, offsets};
use crate::dispatch::{interruptible, native, Call};
use crate::inputs;
use crate::state::Engine;
use crate::sys::nr;
use crate::thread::Thread;
use crate::undo::{self, Before};
use crate::user;
use outlast_image::inject::option;

/// Is the program one that commits only when asked?
pub fn chosen(e: &Engine) -> bool {
    e.args.options & option::NO_VISIBLE != 0
}

/// Makes the call; what a rollback has to undo of it is noted.
pub fn serve(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    if let Some(r) = inputs::serve_again(e, call) {
        return r;
    }
    if inputs::source_of(e, call).is_some() {
        return input::consume(e, t, call, call);
    }
    let before = undo::before(e, call);
    if matches!(before, Before::Visible) {
        return names::serve(e, t, call);
    }
    if passes_descriptors(call) {
        undo::share_all(e);
    }
    offsets::note_moved(e, call);
    let r = if undo::is_quick(e, call, &before) { native(call) } else { interruptible(t, call) };
    if matches!(before, Before::Making) {
        undo::after(e, call, r);
    }
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

/// May descriptors go to somebody else?
fn passes_descriptors(call: &Call) -> bool {
    match call.nr {
        nr::SENDMSG => user::read::<Header>(call.args[1]).is_some_and(|header| header.control_len > 0),
        nr::SENDMMSG => true,
        _ => false,
    }
}
