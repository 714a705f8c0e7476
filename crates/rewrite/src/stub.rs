//! The stub of a site: what it looks like in memory, and what an address inside it means to the program.
//!
//! ```text
//!  0  gate       u64  where `jmp *gate(%rip)` goes
//!  8  at         u64  address of the first overwritten byte of the program
//! 16  original   [u8; 16]  what the overwritten bytes were
//! 32  len        u8   how many bytes are overwritten
//! 33  site       u8   offset of the `syscall` from `at`; equal to `len` if it is not overwritten
//! 34  restart    u8   offset in the stub of E
//! 35  end        u8   offset in the stub of the first byte behind the code
//! 36  mark       u32  MARK
//! 40  moved instructions from before the call
//!  E  lea tail(%rip),%rcx
//!     jmp *gate(%rip)
//!     syscall
//! tail  moved instructions from after the call, then a jump back
//! ```
//!
//! A stub says everything about itself, so that recovery, debuggers and [`crate::StubAreas`] need nothing else.
//! Nothing but rcx changes on the way to the gate: no flags, no stack, so the red zone stays intact.
//!
//! The `syscall` is reached only from the gate, which goes to `rcx - 2` to have the call made by the kernel (in a process
//! that is not protected) or made once more: there it finds what it finds before a site that is not rewritten.

use crate::emit::{GATE_JUMP_LEN, LEA_LEN};
use crate::patch::Patch;
use crate::region::{moved_len, Moved, Region, JUMP_LEN, MAX_PATCH, SYSCALL};

/// Bytes from one stub to the next.
pub const STUB_LEN: usize = 96;
/// Offset in a stub of the 8-byte address of the gate.
pub const GATE_OFFSET: usize = 0;
/// Offset in a stub of its first instruction.
pub const CODE_OFFSET: usize = 40;
/// A call is restarted at E, this many bytes before the tail that rcx holds at the gate.
pub const RESTART_DISTANCE: u64 = LEA_LEN + GATE_JUMP_LEN + SYSCALL.len() as u64;

/// Where a restarted call goes on, from the tail address that the gate finds in rcx.
pub const fn restart_of(tail: u64) -> u64 {
    tail - RESTART_DISTANCE
}

/// A stub read back from memory.
#[derive(Clone, Copy, Debug)]
pub struct Stub {
    patch: Patch,
}

impl Stub {
    /// Reads the stub that lies at `address`; `None` if the bytes are not one that this crate wrote.
    pub fn read(address: u64, bytes: &[u8; STUB_LEN]) -> Option<Stub> {
        let eight = |at: usize| bytes[at..at + 8].try_into().map(u64::from_le_bytes).ok();
        let region =
            Region { at: eight(8)?, original: bytes[16..32].try_into().ok()?, len: bytes[32], site: bytes[33] };
        let fits = region.len as usize <= MAX_PATCH && region.site <= region.len && region.at < 1 << 63;
        if !fits {
            return None;
        }
        // Written again it must be the same: so nothing of it is trusted unseen.
        let patch = Patch::new(region, address, eight(GATE_OFFSET)?)?;
        (patch.stub == *bytes).then_some(Stub { patch })
    }

    /// The patch that this stub belongs to: to undo it, or to write it once more.
    pub fn patch(&self) -> Patch {
        self.patch
    }

    pub(crate) fn region(&self) -> &Region {
        &self.patch.region
    }

    /// The address in the unpatched program that `rip`, inside this stub, stands for: for debuggers, signal frames and
    /// commits. On the way to the gate, and at the stub's own `syscall`, that is the `syscall` itself (only rcx differs, which
    /// a call overwrites). `None` between two instructions and in the stub's data.
    pub fn program_address(&self, rip: u64) -> Option<u64> {
        let call = self.patch.restart();
        if [call, call + LEA_LEN, call + LEA_LEN + GATE_JUMP_LEN].contains(&rip) {
            return Some(self.patch.site());
        }
        self.pairs().find(|pair| pair.0 == rip).map(|pair| pair.1)
    }

    /// The inverse: where a thread whose next instruction is at `address` of the unpatched program has to go on, if that
    /// instruction is (or belongs to) what this stub stands for. A thread that was inside the overwritten bytes when they
    /// were overwritten, or comes back to them from a signal frame, must be moved there.
    pub fn stub_address(&self, address: u64) -> Option<u64> {
        if address == self.patch.site() {
            return Some(self.patch.restart());
        }
        self.pairs().find(|pair| pair.1 == address).map(|pair| pair.0)
    }

    /// (address in the stub, address in the program) of every moved instruction, and of the jump back.
    fn pairs(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let Patch { region, layout, stub_address, .. } = &self.patch;
        let place = |mut address: u64| {
            move |moved: Moved| {
                let pair = (address, region.at + moved.offset as u64);
                address += moved_len(&moved.instruction) as u64;
                pair
            }
        };
        let before = region.before().map(place(self.patch.entry()));
        let after = region.after().map(place(self.patch.tail()));
        let back = (!region.leaves()).then(|| (stub_address + layout.end as u64 - JUMP_LEN as u64, region.resume()));
        before.chain(after).chain(back)
    }
}
