//! The anchor: a sibling that shares the program's descriptor table and nothing else, and keeps it through SIGKILL.
//! A process cloned from it also inherits the executable, the break, the auxiliary vector and the directory.

use crate::control::{control, fail};
use crate::state::Engine;
use crate::sys::{err, futex_wait, futex_wake, nr, syscall};
use core::sync::atomic::Ordering::*;
use outlast_image::control::anchor_command;

const CLONE_FS: u64 = 0x200;
const CLONE_FILES: u64 = 0x400;
const CLONE_PARENT: u64 = 0x8000;
const KIN: u64 = CLONE_FS | CLONE_FILES | CLONE_PARENT;
const PR_SET_NAME: u64 = 15;

/// Clones the anchor from the program.
pub fn make() -> i64 {
    // SAFETY: a clone without CLONE_VM returns twice on separate copies of this stack.
    let r = unsafe { syscall!(nr::CLONE, KIN, 0, 0, 0, 0) };
    if r == 0 {
        serve();
    }
    if r > 0 {
        control().anchor_pid.store(r as i32, Release);
    }
    r
}

/// The anchor died: clones a new one. The new one's memory is a copy of all of the program's.
pub fn renew(_e: &mut Engine) {
    let r = make();
    if err::is(r) {
        fail!(r);
    }
}

/// The anchor's life: waits for commands, with every signal blocked.
fn serve() -> ! {
    let c = control();
    // SAFETY: plain calls of a process of its own.
    unsafe {
        let all = !0u64;
        syscall!(nr::RT_SIGPROCMASK, 2, &raw const all, 0, 8);
        syscall!(nr::SETPGID, 0, 0);
        syscall!(nr::PRCTL, PR_SET_NAME, c"outlast-anchor".as_ptr());
        loop {
            match c.anchor_command.load(Acquire) {
                anchor_command::NONE => {
                    futex_wait(&c.anchor_command, anchor_command::NONE, None);
                }
                anchor_command::RESPAWN => {
                    c.anchor_command.store(anchor_command::NONE, Release);
                    respawn();
                }
                _ => {
                    syscall!(nr::EXIT_GROUP, 0);
                }
            }
        }
    }
}

/// `struct clone_args`.
#[repr(C)]
#[derive(Default)]
struct CloneArgs {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

unsafe fn respawn() {
    let c = control();
    let wanted = c.wanted_pid.load(Acquire);
    let mut args = CloneArgs { flags: KIN, ..Default::default() };
    if wanted > 0 {
        args.set_tid = (&raw const wanted) as u64;
        args.set_tid_size = 1;
    }
    let r = syscall!(nr::CLONE3, &raw const args, core::mem::size_of::<CloneArgs>());
    if r == 0 {
        crate::on_stack(crate::thread::inner_stack_top(), crate::restore::respawned);
    }
    c.new_pid.store(r as i32, Release);
    if r > 0 {
        c.program_pid.store(r as i32, Release);
    }
    c.anchor_done.store(1, Release);
    futex_wake(&c.anchor_done);
}
