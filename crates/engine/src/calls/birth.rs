//! The word of the control page that the kernel writes a child's process id to, before the child runs and before its
//! parent can die: a fork that a dead predecessor was about to make is known to have happened, and is not made again.

use crate::control::control;
use crate::dispatch::Call;
use crate::mutant::without;
use crate::sys::nr;
use crate::user;
use core::sync::atomic::Ordering::{Acquire, Release};
use outlast_image::mutant::Mutant;

pub const CLONE_VM: u64 = 0x100;
pub const CLONE_VFORK: u64 = 0x4000;
pub const SIGCHLD: u64 = 17;
const CLONE_PIDFD: u64 = 0x1000;
pub const CLONE_PARENT_SETTID: u64 = 0x10_0000;
pub const CLONE_CHILD_CLEARTID: u64 = 0x20_0000;
pub const CLONE_CHILD_SETTID: u64 = 0x100_0000;

/// `struct clone_args`, with room for what later kernels may add.
pub type CloneArgs = [u64; 16];
/// Index of `parent_tid` there.
const PARENT_TID: usize = 3;

/// The child that the call of a dead predecessor made.
pub fn found() -> Option<i64> {
    let pid = control().birth.load(Acquire);
    (pid > 0 && !without(Mutant::Birth)).then_some(pid.into())
}

/// Forgets an earlier birth. The commit of the call that makes the next one must follow.
pub fn expect() {
    control().birth.store(0, Release);
}

/// A call that makes a child, and makes the kernel note its birth.
pub struct Noted {
    pub call: Call,
    /// Where the program itself wants the child's process id.
    wanted: Option<u64>,
}

impl Noted {
    /// `None` if the arguments cannot be read. `room`: what the new call points to.
    pub fn new(call: &Call, room: &mut CloneArgs) -> Option<Noted> {
        let word = control().birth.as_ptr() as u64;
        let a = &call.args;
        let plain = |flags: u64| Noted {
            call: Call { nr: nr::CLONE, args: [flags | SIGCHLD | CLONE_PARENT_SETTID, 0, word, 0, 0, 0] },
            wanted: None,
        };
        let as_it_is = Some(Noted { call: *call, wanted: None });
        Some(match call.nr {
            nr::FORK => plain(0),
            nr::VFORK => plain(CLONE_VM | CLONE_VFORK),
            // The kernel takes one address for both.
            nr::CLONE if a[0] & CLONE_PIDFD != 0 => return as_it_is,
            nr::CLONE => {
                let wanted = (a[0] & CLONE_PARENT_SETTID != 0).then_some(a[2]);
                let args = [a[0] | CLONE_PARENT_SETTID, a[1], word, a[3], a[4], a[5]];
                Noted { call: Call { nr: call.nr, args }, wanted }
            }
            _ => {
                let bytes = bytemuck::bytes_of_mut(room);
                let len = a[1] as usize;
                // A length that is none is the kernel's to refuse.
                if len > bytes.len() || len <= PARENT_TID * size_of::<u64>() {
                    return as_it_is;
                }
                if !user::read_bytes(a[0], &mut bytes[..len]) {
                    return None;
                }
                let wanted = (room[0] & CLONE_PARENT_SETTID != 0).then_some(room[PARENT_TID]);
                room[0] |= CLONE_PARENT_SETTID;
                room[PARENT_TID] = word;
                let args = [room.as_ptr() as u64, a[1], a[2], a[3], a[4], a[5]];
                Noted { call: Call { nr: call.nr, args }, wanted }
            }
        })
    }

    /// Tells the program, too, of the birth. A bad address is nobody's error, as for the kernel.
    pub fn tell(&self, pid: i64) {
        if let (Some(at), 1..) = (self.wanted, pid) {
            user::write(at, &(pid as i32));
        }
    }
}
