//! What a call that makes a child wants.

use crate::calls::birth::{
    CLONE_CHILD_CLEARTID, CLONE_CHILD_SETTID, CLONE_PARENT_SETTID, CLONE_VFORK, CLONE_VM, SIGCHLD,
};
use crate::dispatch::Call;
use crate::sys::nr;
use crate::user;

const CLONE_PARENT: u64 = 0x8000;
const CSIGNAL: u64 = 0xff;
/// What a call may want besides memory, and still make a child like any other.
const PLAIN: u64 = CSIGNAL | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID | CLONE_CHILD_SETTID;

/// The arguments of fork, vfork, clone and clone3.
pub struct Newborn {
    /// Those of clone, the signal that its parent gets among them.
    pub flags: u64,
    /// Where the stack ends that it has been given; 0: none.
    pub stack: u64,
    /// Where the child itself wants its number.
    pub child_tid: u64,
}

/// How a child comes by its memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// By fork: it is a copy.
    Copied,
    /// By vfork or posix_spawn: it is its parent's, which stands still until the child has ended or become another program.
    Shared,
}

impl Newborn {
    /// What such a call wants; none: its arguments cannot be read.
    pub fn of(call: &Call) -> Option<Self> {
        let a = call.args;
        Some(match call.nr {
            nr::FORK => Self { flags: SIGCHLD, stack: 0, child_tid: 0 },
            nr::VFORK => Self { flags: SIGCHLD | CLONE_VM | CLONE_VFORK, stack: 0, child_tid: 0 },
            nr::CLONE => Self { flags: a[0], stack: a[1], child_tid: a[3] },
            _ => {
                // struct clone_args: flags, pidfd, child_tid, parent_tid, exit_signal, stack, its size, tls; more may follow.
                let c = user::read::<[u64; 8]>(a[0])?;
                let stack = if c[5] == 0 { 0 } else { c[5] + c[6] };
                Self { flags: c[0] | c[4] & CSIGNAL, stack, child_tid: c[2] }
            }
        })
    }

    /// None: a child that is not made here, but by the kernel as a child of this process's.
    pub fn memory(&self) -> Option<Memory> {
        let memory = match self.flags & (CLONE_VM | CLONE_VFORK) {
            0 | CLONE_VFORK => Memory::Copied,
            CLONE_VM => return None,
            _ => Memory::Shared,
        };
        let others = self.flags & !(PLAIN | CLONE_VM | CLONE_VFORK);
        (others == 0 && self.flags & CSIGNAL == SIGCHLD).then_some(memory)
    }

    /// The call that makes it as a child of the supervisor's, with the word where the kernel notes its birth. One with a copy of the memory
    /// begins on its copy of the engine's stack.
    pub fn as_sibling(&self, memory: Memory, birth: u64) -> Call {
        let (of_memory, stack) = match memory {
            Memory::Copied => (0, 0),
            Memory::Shared => (CLONE_VM | CLONE_VFORK, self.stack),
        };
        let kept = self.flags & (CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID);
        let flags = of_memory | kept | CLONE_PARENT | CLONE_PARENT_SETTID;
        Call { nr: nr::CLONE, args: [flags, stack, birth, self.child_tid, 0, 0] }
    }
}
