//! Overwriting code that other threads may be executing.

use crate::code::Code;
use crate::region::MAX_PATCH;

/// Old and new bytes at an address. Code changes only where the old bytes are still there: they may have been unmapped, mapped
/// anew or rewritten since (`dlclose`, just-in-time compilers), and only the caller can look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overwrite {
    pub(crate) at: u64,
    pub(crate) len: u8,
    pub(crate) old: [u8; MAX_PATCH],
    pub(crate) new: [u8; MAX_PATCH],
    pub(crate) holds_boundary: bool,
}

/// How to write. All but the first two are sequences that a kill can stop half-way: the store must not commit between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteStrategy {
    /// One naturally aligned 8-byte compare-and-swap at `at`: instruction fetch sees all of it or nothing. Other run-time
    /// systems rely on the same (HotSpot does, to redirect methods); `tests/concurrent.rs` hammers it.
    Swap8 { at: u64, old: u64, new: u64 },
    /// One `cmpxchg16b` at `at`, aligned to 16. Held up under the same hammer, but nobody else is known to rely on it:
    /// given only where the caller asked for it.
    Swap16 { at: u64, old: u128, new: u128 },
    /// The three [`Overwrite::steps`] one after the other, every processor serialised after each
    /// (`membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE)`). A thread that meets the breakpoint (SIGTRAP with rip
    /// behind `at`) is sent back to `at`; SIGTRAP must not be blocked anywhere meanwhile.
    Breakpoint,
    /// Every other thread must be parked first, and one whose next instruction is inside the overwritten bytes be moved by
    /// [`crate::Stub::stub_address`]: an instruction of the program starts inside them.
    NeedsParkedThreads,
}

impl Overwrite {
    /// Address of the first byte.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// The bytes that must be there.
    pub fn expected(&self) -> &[u8] {
        &self.old[..self.len as usize]
    }

    /// The bytes to be there.
    pub fn replacement(&self) -> &[u8] {
        &self.new[..self.len as usize]
    }

    /// Whether `bytes`, read at [`Overwrite::at`], are still the old ones. Look right before writing.
    pub fn still_valid(&self, bytes: &[u8]) -> bool {
        bytes.get(..self.len as usize) == Some(self.expected())
    }

    /// Whether an instruction that a thread may be about to execute starts inside the bytes, after their first.
    pub fn holds_boundary(&self) -> bool {
        self.holds_boundary
    }

    /// How to write into `code`, which still holds the old bytes, while other threads run. A process of one thread can
    /// write as it likes, if the thread is not about to execute the bytes. `wide` allows `cmpxchg16b`, if the processor has it.
    pub fn strategy(&self, code: &Code, wide: bool) -> WriteStrategy {
        if self.holds_boundary {
            return WriteStrategy::NeedsParkedThreads;
        }
        if let Some((at, old, new)) = self.word::<8>(code) {
            return WriteStrategy::Swap8 { at, old: u64::from_le_bytes(old), new: u64::from_le_bytes(new) };
        }
        match self.word::<16>(code) {
            Some((at, old, new)) if wide => {
                WriteStrategy::Swap16 { at, old: u128::from_le_bytes(old), new: u128::from_le_bytes(new) }
            }
            _ => WriteStrategy::Breakpoint,
        }
    }

    /// Address and bytes of each step of [`WriteStrategy::Breakpoint`].
    pub fn steps(&self) -> [(u64, &[u8]); 3] {
        let (first, rest) = self.replacement().split_at(1);
        [(self.at, &[0xcc]), (self.at + 1, rest), (self.at, first)]
    }

    /// The aligned word of `W` bytes around the bytes, before and after, if they lie in one.
    fn word<const W: usize>(&self, code: &Code) -> Option<(u64, [u8; W], [u8; W])> {
        let at = self.at & !(W as u64 - 1);
        let first = (self.at - at) as usize;
        let old: [u8; W] = code.at(at, W)?.try_into().ok()?;
        let mut new = old;
        new.get_mut(first..first + self.len as usize)?.copy_from_slice(self.replacement());
        Some((at, old, new))
    }
}
