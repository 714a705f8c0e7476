//! One line of the table.

use crate::{Class, Interrupted, Len, Out, RingOp, Timeout, Unit, Witness};

/// The largest number of out-parameters that a call has.
pub const OUTS: usize = 4;

/// Everything the engine must know about one system call before it makes it.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Number in `asm/unistd_64.h`.
    pub nr: u16,
    /// Name there, without `__NR_`.
    pub name: &'static str,
    pub class: Class,
    /// Can block for an unbounded time (on local file systems; a dead network server can hold any call).
    pub waits: bool,
    pub interrupted: Interrupted,
    /// How long it waits at most, if an argument says that; [`crate::timeout`] looks at the others.
    pub timeout: Option<Timeout>,
    /// The argument that the engine must look at before it trusts the class. Never set where the class is Pure.
    pub decided_by: Option<u8>,
    /// The ring operation with the same effect, if there is one.
    pub ring: Option<RingOp>,
    /// What tells whether it happened, where there is no ring.
    pub witness: Witness,
    /// For Redo: why it is idempotent. For Once: how to tell. For Object: what is lost. Else what a reader must know,
    /// or "".
    pub note: &'static str,
    /// The argument that is a clock, which may be that of a process or thread.
    pub clock: Option<u8>,
    descriptors: u8,
    processes: u8,
    users: Option<(u8, u32)>,
    outs: u8,
    out: [Out; OUTS],
}

impl Row {
    /// Bit `i` is set if argument `i` is a descriptor (for the `*at` calls also AT_FDCWD).
    pub const fn descriptors(&self) -> u8 {
        self.descriptors
    }

    /// Bit `i` is set if argument `i` of the call is the number of a process, a thread or a process group.
    pub const fn processes(&self, args: &[u64; 6]) -> u8 {
        match self.users {
            // The kernel takes the low half only.
            Some((arg, value)) if args[arg as usize] as u32 == value => 0,
            _ => self.processes,
        }
    }

    /// Does it name processes or threads, at least with some arguments?
    pub const fn names_processes(&self) -> bool {
        self.processes != 0 || self.clock.is_some()
    }

    /// The first argument that is a descriptor.
    pub const fn descriptor(&self) -> Option<u8> {
        if self.descriptors == 0 {
            None
        } else {
            Some(self.descriptors.trailing_zeros() as u8)
        }
    }

    /// The memory that the kernel writes.
    pub const fn outs(&self) -> &[Out] {
        self.out.split_at(self.outs as usize).0
    }

    pub(crate) const fn new(nr: u16, name: &'static str, class: Class) -> Row {
        Row {
            nr,
            name,
            class,
            waits: false,
            interrupted: Interrupted::Never,
            timeout: None,
            decided_by: None,
            ring: None,
            witness: Witness::None,
            note: "",
            clock: None,
            descriptors: 0,
            processes: 0,
            users: None,
            outs: 0,
            out: [Out { arg: 0, len: Len::Fixed(0) }; OUTS],
        }
    }

    pub(crate) const fn waits(mut self, interrupted: Interrupted) -> Row {
        self.waits = true;
        self.interrupted = interrupted;
        self
    }

    pub(crate) const fn interrupted(mut self, interrupted: Interrupted) -> Row {
        self.interrupted = interrupted;
        self
    }

    pub(crate) const fn timeout(mut self, arg: u8, unit: Unit) -> Row {
        self.timeout = Some(Timeout { arg, unit, is_written_back: false });
        self
    }

    /// The kernel writes what is left where the argument points to.
    pub(crate) const fn timeout_left(mut self, arg: u8, unit: Unit) -> Row {
        self.timeout = Some(Timeout { arg, unit, is_written_back: true });
        self
    }

    pub(crate) const fn decided_by(mut self, arg: u8) -> Row {
        self.decided_by = Some(arg);
        self
    }

    pub(crate) const fn ring(mut self, op: RingOp) -> Row {
        self.ring = Some(op);
        self
    }

    pub(crate) const fn witness(mut self, witness: Witness) -> Row {
        self.witness = witness;
        self
    }

    pub(crate) const fn note(mut self, note: &'static str) -> Row {
        self.note = note;
        self
    }

    pub(crate) const fn fd(mut self, arg: u8) -> Row {
        self.descriptors |= 1 << arg;
        self
    }

    pub(crate) const fn fds(mut self, mask: u8) -> Row {
        self.descriptors = mask;
        self
    }

    pub(crate) const fn process(mut self, arg: u8) -> Row {
        self.processes |= 1 << arg;
        self
    }

    /// The number is a user's where argument `arg` is `value`.
    pub(crate) const fn user_if(mut self, arg: u8, value: u32) -> Row {
        self.users = Some((arg, value));
        self
    }

    pub(crate) const fn clock(mut self, arg: u8) -> Row {
        self.clock = Some(arg);
        self
    }

    pub(crate) const fn out(mut self, arg: u8, len: Len) -> Row {
        self.out[self.outs as usize] = Out { arg, len };
        self.outs += 1;
        self
    }
}
