//! When the supervisor dies, the anchor starts another one: with the program's rights, and with nothing else of it.

use crate::call_filters;
use crate::control::control;
use crate::sys::{err, futex_wait, futex_wait_any, nr, syscall};
use core::sync::atomic::{AtomicU32, Ordering::*};
use outlast_filter::needs::wish;
use outlast_image::control::supervisor::DIED;
use outlast_image::layout::{session, SESSION_BASE};
use outlast_image::successor::Successor;

const CLONE_PARENT: u64 = 0x8000;
const O_RDWR: u64 = 2;

/// How long the first successor has until the next one is tried; each has twice as long as the one before.
const FIRST_PATIENCE_NS: u64 = 50_000_000;
/// How many are tried before the next command has to start one.
const TRIES: u32 = 10;
/// How often the supervisor is looked at where no two futexes can be waited for at once.
const PULSE_NS: u64 = 1_000_000_000;

/// The supervisor, as the anchor sees it.
pub struct Watch {
    /// Successors started since it died.
    tries: u32,
}

impl Watch {
    pub const fn new() -> Self {
        Watch { tries: 0 }
    }

    /// Sleeps until `command` may have changed from `seen`, and meanwhile sees to it that there is a supervisor. While there is
    /// none to be started, `other` is waited for, too: a word with what it is, or nanoseconds.
    pub fn sleep(&mut self, command: &AtomicU32, seen: u32, other: Result<(&AtomicU32, u32), u64>) {
        let word = &control().supervisor;
        let supervisor = word.load(Acquire);
        let mut other = other;
        if supervisor & DIED == 0 {
            self.tries = 0;
        } else if self.tries < TRIES {
            start();
            other = Err(FIRST_PATIENCE_NS << self.tries);
            self.tries += 1;
        }
        let (patience, words) = (other.err(), [(command, seen), (word, supervisor)]);
        let r = match other {
            Ok(third) => futex_wait_any([words[0], words[1], third], None),
            Err(_) => futex_wait_any(words, patience),
        };
        if r == err::ENOSYS || r == err::EPERM {
            futex_wait(command, seen, Some(patience.unwrap_or(PULSE_NS)));
        }
    }
}

/// Starts a supervisor. It is nobody's child that would have to wait for it, and has none of the program's descriptors.
fn start() {
    if !call_filters::permit(wish::EXECVE) {
        return;
    }
    // SAFETY: a clone without CLONE_VM returns twice on separate copies of this stack.
    let r = unsafe { syscall!(nr::CLONE, CLONE_PARENT, 0, 0, 0, 0) };
    if r == 0 {
        become_supervisor();
    }
}

fn become_supervisor() -> ! {
    // SAFETY: plain calls of a process of its own; the kernel itself bounds the strings, which lie in the session.
    unsafe {
        let successor = (SESSION_BASE + session::SUCCESSOR) as *const Successor;
        let argv = [
            c"outlast".as_ptr() as u64,
            (&raw const (*successor).command) as u64,
            (&raw const (*successor).name) as u64,
            0,
        ];
        let environment = [(&raw const (*successor).state) as u64, 0];
        syscall!(nr::CLOSE_RANGE, 0, u32::MAX, 0);
        for _ in 0..3 {
            syscall!(nr::OPEN, c"/dev/null".as_ptr(), O_RDWR);
        }
        // Not of the program's process group: what is sent there is not meant for it.
        syscall!(nr::SETSID);
        syscall!(nr::EXECVE, &raw const (*successor).exe, argv.as_ptr(), environment.as_ptr());
        loop {
            syscall!(nr::EXIT_GROUP, 127);
        }
    }
}
