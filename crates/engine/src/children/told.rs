//! SIGCHLD: the kernel knows the supervisor as the sender, the program is to know the child.

use super::{is_told, table, SIGCHLD};
use crate::sys::{nr, syscall};
use core::sync::atomic::Ordering::*;
use outlast_image::children::{news, state, Child};

const SI_USER: i32 = 0;

/// What becomes of a child, as `si_code` has it.
pub mod code {
    pub const EXITED: i32 = 1;
    pub const KILLED: i32 = 2;
    pub const DUMPED: i32 = 3;
    pub const STOPPED: i32 = 5;
    pub const CONTINUED: i32 = 6;
}

/// `si_code` and `si_status` of a status as wait4 has it.
pub fn of_status(status: i32) -> (i32, i32) {
    match status & 0x7f {
        0 => (code::EXITED, status >> 8 & 0xff),
        signal if status & 0x80 != 0 => (code::DUMPED, signal),
        signal => (code::KILLED, signal),
    }
}

/// Has a SIGCHLD of the supervisor's tell of a child. To be called wherever a signal is taken from the kernel.
pub fn describe(info: &mut [u64; 16]) {
    if info[0] as i32 != SIGCHLD || info[1] as u32 as i32 > SI_USER || !super::are_kept() {
        return;
    }
    // SAFETY: asks only.
    if info[2] as u32 != unsafe { syscall!(nr::GETPPID) } as u32 {
        return;
    }
    let is_news = |child: &&Child| child.news.load(Acquire) & news::UNTOLD != 0;
    // Signals of a kind are one; what another would have told of is found by whoever waits for all children.
    let Some(child) = table().iter().find(is_news) else { return };
    is_told(child);
    let told = child.news.load(Acquire);
    let (code, status) = match child.state.load(Acquire) {
        state::ENDED | state::TAKEN => of_status(child.status.load(Acquire)),
        _ if told & news::STOPPED != 0 => (code::STOPPED, child.stopped_by.load(Acquire) as i32),
        _ => (code::CONTINUED, 18),
    };
    info[1] = info[1] & !0xffff_ffff | code as u32 as u64;
    info[2] = child.birth.load(Acquire) as u32 as u64 | (child.user.load(Acquire) as u64) << 32;
    info[3] = status as u32 as u64;
    (info[4], info[5]) = (0, 0);
}
