//! Writing a stub, and the jump to it.

use crate::instruction::Flow;
use crate::overwrite::Overwrite;
use crate::region::{Moved, Region, JUMP_LEN, MAX_PATCH, SYSCALL};
use crate::stub::{CODE_OFFSET, GATE_OFFSET, RESTART_DISTANCE, STUB_LEN};

/// Recognises a stub: no instruction, no address.
const MARK: u32 = u32::from_le_bytes(*b"oSt1");
/// Length of `lea tail(%rip),%rcx`.
pub(crate) const LEA_LEN: u64 = 7;
/// Length of `jmp *gate(%rip)`.
pub(crate) const GATE_JUMP_LEN: u64 = 6;

/// Offsets in a stub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub restart: u8,
    pub end: u8,
}

impl Layout {
    pub fn tail(self) -> usize {
        self.restart as usize + RESTART_DISTANCE as usize
    }
}

/// Writes one stub. `None` where something is out of reach or does not fit.
struct Writer {
    stub: [u8; STUB_LEN],
    address: u64,
    at: usize,
}

impl Writer {
    fn bytes(&mut self, bytes: &[u8]) -> Option<()> {
        self.stub.get_mut(self.at..self.at + bytes.len())?.copy_from_slice(bytes);
        self.at += bytes.len();
        Some(())
    }

    /// Four bytes that lead from behind them (and behind `trailing` more) to `target`.
    fn relative(&mut self, target: u64, trailing: usize) -> Option<()> {
        let from = self.address + (self.at + 4 + trailing) as u64;
        self.bytes(&i32::try_from(target.wrapping_sub(from) as i64).ok()?.to_le_bytes())
    }

    fn jump(&mut self, target: u64) -> Option<()> {
        self.bytes(&[0xe9])?;
        self.relative(target, 0)
    }

    fn moved(&mut self, region: &Region, moved: &Moved) -> Option<()> {
        let Moved { offset, instruction } = moved;
        let bytes = &region.original[*offset..offset + instruction.len as usize];
        let Some(target) = region.target(moved) else { return self.bytes(bytes) };
        match instruction.flow {
            Flow::Branch { condition, .. } => {
                self.bytes(&[0x0f, 0x80 | condition])?;
                self.relative(target, 0)
            }
            Flow::Jump { .. } => self.jump(target),
            _ => {
                let (head, rest) = bytes.split_at(instruction.rip_operand? as usize);
                let trailing = &rest[4..];
                self.bytes(head)?;
                self.relative(target, trailing.len())?;
                self.bytes(trailing)
            }
        }
    }
}

/// The stub for `region`, to be written at `address`, and the offset of its end.
pub(crate) fn write(region: &Region, address: u64, gate: u64) -> Option<([u8; STUB_LEN], Layout)> {
    let mut writer = Writer { stub: [0; STUB_LEN], address, at: CODE_OFFSET };
    for moved in region.before() {
        writer.moved(region, &moved)?;
    }
    let restart = writer.at;
    writer.bytes(&[0x48, 0x8d, 0x0d, (RESTART_DISTANCE - LEA_LEN) as u8, 0, 0, 0])?;
    writer.bytes(&[0xff, 0x25])?;
    writer.relative(address + GATE_OFFSET as u64, 0)?;
    writer.bytes(&SYSCALL)?;
    for moved in region.after() {
        writer.moved(region, &moved)?;
    }
    if !region.leaves() {
        writer.jump(region.resume())?;
    }
    let layout = Layout { restart: restart as u8, end: writer.at as u8 };
    let mut stub = writer.stub;
    stub[0..8].copy_from_slice(&gate.to_le_bytes());
    stub[8..16].copy_from_slice(&region.at.to_le_bytes());
    stub[16..32].copy_from_slice(&region.original);
    stub[32..36].copy_from_slice(&[region.len, region.site, layout.restart, layout.end]);
    stub[36..40].copy_from_slice(&MARK.to_le_bytes());
    Some((stub, layout))
}

/// The overwriting of `region` by a jump to the stub at `address`.
pub(crate) fn overwrite(region: &Region, address: u64) -> Option<Overwrite> {
    let from = region.at + JUMP_LEN as u64;
    let jump = i32::try_from((address + CODE_OFFSET as u64).wrapping_sub(from) as i64).ok()?;
    let mut new = [0; MAX_PATCH];
    new[..region.len as usize].fill(0x90);
    new[0] = 0xe9;
    new[1..JUMP_LEN].copy_from_slice(&jump.to_le_bytes());
    let first = region.before().next().map_or(SYSCALL.len() as u8, |moved| moved.instruction.len);
    let holds_boundary = first < region.len;
    Some(Overwrite { at: region.at, len: region.len, old: region.original, new, holds_boundary })
}
