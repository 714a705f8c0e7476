//! `--commit manual`: calls that others see are made with no commit before them. A recovery goes back to the last commit that
//! was asked for: files are set back and streams are read again, but what was sent since is sent again, and of what was received since
//! datagrams, connections and events are gone.

use super::message::Header;
use super::{input, names, offsets};
use crate::dispatch::{interruptible, native, Call};
use crate::inputs;
use crate::own_files;
use crate::state::Engine;
use crate::sys::nr;
use crate::thread::Thread;
use crate::undo::{self, Before};
use crate::unnamed;
use crate::user;
use outlast_image::kernel::before_outputs;

/// So many messages the kernel takes at once.
const MOST_MESSAGES: u64 = 1024;

/// Is the program one that commits only when asked?
pub fn chosen(e: &Engine) -> bool {
    e.kernel.before_outputs == before_outputs::NOTHING
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
    share_passed(e, call);
    offsets::note_moved(e, call);
    let r = if undo::is_quick(e, call, &before) {
        native(call)
    } else {
        t.is_unseen = true;
        let r = interruptible(t, call);
        t.is_unseen = false;
        r
    };
    if matches!(before, Before::Making) {
        undo::after(e, call, r);
    }
    match call.nr {
        nr::READ | nr::READV | nr::TIMERFD_SETTIME => unnamed::changed(e, call.fd()),
        nr::OPEN | nr::OPENAT | nr::OPENAT2 | nr::CREAT | nr::ACCEPT | nr::ACCEPT4 => e.fds.opened(r),
        nr::RECVMSG if r >= 0 => input::note_received(e, call.args[1]),
        nr::RECVMMSG => {
            for n in 0..r.max(0) as u64 {
                input::note_received(e, call.args[1] + n * input::MESSAGE_LEN);
            }
        }
        _ => {}
    }
    r
}

/// Notes which descriptors may go to somebody else.
pub fn share_passed(e: &mut Engine, call: &Call) {
    let [_, messages, count, ..] = call.args;
    let passes = |at: u64| user::read::<Header>(at).is_some_and(|header| header.control_len > 0);
    let may = match call.nr {
        nr::SENDMSG => passes(messages),
        nr::SENDMMSG => (0..count.min(MOST_MESSAGES)).any(|n| passes(messages + n * input::MESSAGE_LEN)),
        _ => false,
    };
    if may {
        own_files::disown_all(e);
        undo::share_all(e);
    }
}
