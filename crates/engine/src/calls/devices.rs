//! ioctl: which requests only ask.

use crate::dispatch::Call;

/// Requests without any effect: TCGETS, TIOCGPGRP, TIOCOUTQ, TIOCGWINSZ, FIONREAD, TIOCGSID, TCGETS2, TIOCGPTN …
const ASKING: [u64; 11] =
    [0x5401, 0x5405, 0x540f, 0x5411, 0x5413, 0x5415, 0x541b, 0x5429, 0x802c_542a, 0x8004_5430, 0x8004_5439];

/// Has the request no effect?
pub fn only_asks(call: &Call) -> bool {
    ASKING.contains(&(call.args[1] & 0xffff_ffff))
}
