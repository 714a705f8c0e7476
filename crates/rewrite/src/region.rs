//! The instructions that make room for a jump, wherever they are read from.

use crate::decode::decode;
use crate::instruction::{Flow, Instruction};

/// Most bytes that one patch overwrites.
pub const MAX_PATCH: usize = 16;
pub(crate) const SYSCALL: [u8; 2] = [0x0f, 0x05];
/// Length of `jmp rel32`.
pub(crate) const JUMP_LEN: usize = 5;

/// What a stub is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    /// Address of the first overwritten byte.
    pub at: u64,
    /// The overwritten bytes; the rest is 0.
    pub original: [u8; MAX_PATCH],
    pub len: u8,
    /// Offset of the `syscall`.
    pub site: u8,
}

/// One moved instruction: its offset in the region and itself.
pub(crate) struct Moved {
    pub offset: usize,
    pub instruction: Instruction,
}

impl Region {
    /// The instructions before the call.
    pub fn before(&self) -> impl Iterator<Item = Moved> + '_ {
        self.instructions(0, self.site as usize)
    }

    /// The instructions after the call, up to one that does not go on to the next.
    pub fn after(&self) -> impl Iterator<Item = Moved> + '_ {
        self.instructions(self.site as usize + SYSCALL.len(), self.len as usize)
    }

    fn instructions(&self, mut offset: usize, end: usize) -> impl Iterator<Item = Moved> + '_ {
        core::iter::from_fn(move || {
            let instruction = decode(self.original.get(offset..end).filter(|bytes| !bytes.is_empty())?).ok()?;
            let moved = Moved { offset, instruction };
            offset = if ends(&instruction) { end } else { offset + instruction.len as usize };
            Some(moved)
        })
    }

    /// What a moved instruction refers to relative to where it stands: a branch target or a rip-relative operand.
    pub fn target(&self, moved: &Moved) -> Option<u64> {
        let Moved { offset, instruction } = moved;
        let displacement = match (instruction.flow, instruction.rip_operand) {
            (Flow::Branch { displacement, .. } | Flow::Jump { displacement }, _) => displacement,
            (_, Some(operand)) => {
                let bytes = self.original.get(offset + operand as usize..)?;
                i32::from_le_bytes(*bytes.first_chunk()?)
            }
            _ => return None,
        };
        Some((self.at + (offset + instruction.len as usize) as u64).wrapping_add_signed(displacement.into()))
    }

    /// Whether the instructions after the call do not lead on to those behind the region.
    pub fn leaves(&self) -> bool {
        self.after().last().is_some_and(|moved| ends(&moved.instruction))
    }

    /// Where the program goes on after the stub: behind the call, and where a moved branch leads (else 0).
    pub fn lands(&self) -> [u64; 2] {
        // There is never a second branch: the flags would have to be set in between, for which five bytes are too few.
        let branch = self.after().find(|moved| moved.instruction.flow != Flow::Next);
        [self.resume(), branch.and_then(|moved| self.target(&moved)).unwrap_or(0)]
    }

    /// Where the program goes on behind the overwritten bytes and the call.
    pub fn resume(&self) -> u64 {
        self.at + u64::from(self.len.max(self.site + SYSCALL.len() as u8))
    }

    /// Address of the `syscall` instruction.
    pub fn site(&self) -> u64 {
        self.at + u64::from(self.site)
    }
}

/// Whether nothing is executed after the instruction.
pub(crate) fn ends(instruction: &Instruction) -> bool {
    matches!(instruction.flow, Flow::Jump { .. } | Flow::Leave | Flow::Stop)
}

/// Bytes that a moved instruction takes in a stub: branches are always long there.
pub(crate) fn moved_len(instruction: &Instruction) -> usize {
    match instruction.flow {
        Flow::Branch { .. } => 6,
        Flow::Jump { .. } => JUMP_LEN,
        _ => instruction.len as usize,
    }
}
