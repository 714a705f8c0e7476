//! What a filter answers.

/// What the kernel does with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Makes it; perhaps it writes a line to the audit log.
    Allowed,
    /// Does not make it, and returns this error number, 0 included.
    Errno(u16),
    /// Does not make it, and sends SIGSYS with this in `si_errno`.
    Trap(u16),
    /// Ends the thread.
    KillThread,
    /// Ends the process.
    KillProcess,
    /// Asks a tracer; without one the call does not exist.
    Trace,
    /// Asks whoever listens at a descriptor; without anybody the call does not exist.
    Notify,
}

/// Actions as the kernel numbers them, in the upper half of a filter's value: the least, as a signed number, is the strictest.
mod action {
    pub const KILL_THREAD: u32 = 0;
    pub const TRAP: u32 = 0x0003_0000;
    pub const ERRNO: u32 = 0x0005_0000;
    pub const USER_NOTIF: u32 = 0x7fc0_0000;
    pub const TRACE: u32 = 0x7ff0_0000;
    pub const LOG: u32 = 0x7ffc_0000;
    pub const ALLOW: u32 = 0x7fff_0000;
    pub const MASK: u32 = 0xffff_0000;
}

const MAX_ERRNO: u16 = 4095;

impl Verdict {
    /// From the value that a filter returns.
    pub fn of(value: u32) -> Verdict {
        let data = value as u16;
        match value & action::MASK {
            action::ALLOW | action::LOG => Verdict::Allowed,
            action::ERRNO => Verdict::Errno(data.min(MAX_ERRNO)),
            action::TRAP => Verdict::Trap(data),
            action::KILL_THREAD => Verdict::KillThread,
            action::TRACE => Verdict::Trace,
            action::USER_NOTIF => Verdict::Notify,
            // What the kernel does not know it takes for this.
            _ => Verdict::KillProcess,
        }
    }

    const fn bit(self) -> u8 {
        match self {
            Verdict::Allowed => 1,
            Verdict::Errno(_) => 2,
            Verdict::Trap(_) => 4,
            Verdict::KillThread => 8,
            Verdict::KillProcess => 16,
            Verdict::Trace => 32,
            Verdict::Notify => 64,
        }
    }
}

/// Of the values of two filters the one that counts: the stricter, and of equally strict ones that of the filter that was installed
/// later, which is `later`.
pub fn strictest(earlier: u32, later: u32) -> u32 {
    let rank = |value: u32| (value & action::MASK) as i32;
    if rank(earlier) < rank(later) {
        earlier
    } else {
        later
    }
}

/// Kinds of verdict, values not told apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdicts(u8);

impl Verdicts {
    pub const NONE: Verdicts = Verdicts(0);
    pub const ALL: Verdicts = Verdicts(0x7f);

    pub fn insert(&mut self, verdict: Verdict) {
        self.0 |= verdict.bit();
    }

    pub fn contains(self, verdict: Verdict) -> bool {
        self.0 & verdict.bit() != 0
    }

    pub fn union(self, other: Verdicts) -> Verdicts {
        Verdicts(self.0 | other.0)
    }

    /// Is the call made, whatever is not known of it?
    pub fn is_allowed(self) -> bool {
        self.0 == Verdict::Allowed.bit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stricter_counts_and_of_equals_the_later() {
        let (allow, eperm, eacces, kill) = (0x7fff_0000, 0x0005_0001, 0x0005_000d, 0x8000_0000);
        assert_eq!(strictest(allow, eperm), eperm);
        assert_eq!(strictest(eperm, allow), eperm);
        assert_eq!(strictest(eperm, eacces), eacces);
        assert_eq!(strictest(0, kill), kill);
        assert_eq!(Verdict::of(0x0006_0000), Verdict::KillProcess);
        assert_eq!(Verdict::of(0x0005_ffff), Verdict::Errno(4095));
    }
}
