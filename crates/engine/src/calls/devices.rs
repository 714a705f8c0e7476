//! ioctl: requests that only ask, requests about the terminal, and all others.

use crate::calls::{descriptors, groups, own_faults, owners, window};
use crate::dispatch::{interruptible, redo, Call};
use crate::inputs::readiness::{self, FIONREAD};
use crate::state::Engine;
use crate::thread::Thread;

/// Requests without any effect: TCGETS, TIOCOUTQ, TIOCGSID, TCGETS2, TIOCGPTN …
const ASKING: [u64; 8] = [0x5401, 0x5405, 0x5411, 0x5415, 0x5429, 0x802c_542a, 0x8004_5430, 0x8004_5439];

/// Requests whose result is a new descriptor: TIOCGPTPEER, NS_GET_USERNS, NS_GET_PARENT.
const OPENING: [u64; 3] = [0x5441, 0xb701, 0xb702];

pub fn serve(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    match call.args[1] & 0xffff_ffff {
        window::TIOCGWINSZ => window::ask(e, t, call),
        groups::TIOCGPGRP => groups::ask_foreground(e, t, call),
        groups::TIOCSPGRP => groups::set_foreground(e, t, call),
        groups::TIOCSCTTY => {
            groups::make_real(e);
            redo(e, t, call)
        }
        own_faults::USERFAULTFD_IOC_NEW => own_faults::serve(e, t, call),
        request if own_faults::is_request(request) => own_faults::request(e, t, call),
        FIONREAD => readiness::answer(e, call).unwrap_or_else(|| interruptible(t, call)),
        request if OPENING.contains(&request) => descriptors::open(e, t, call),
        request if ASKING.contains(&request) => interruptible(t, call),
        _ if owners::is_one(e, call) => owners::serve(e, call),
        _ => redo(e, t, call),
    }
}
