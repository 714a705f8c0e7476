//! Direct branches into bytes that are to be overwritten.
//!
//! Any byte that could begin a direct branch counts as one, at every alignment, in code and in what only looks like it: a
//! site refused for nothing costs microseconds, a branch into the middle of a jump costs the program. Short branches are
//! so common among random bytes that one more question is asked: whether an instruction can start there at all.

use crate::boundary::may_start;
use crate::code::Code;

/// Bytes that a branch with a displacement of four bytes ends after its last opcode byte.
const LONG: usize = 5;

/// A segment, and which of its bytes a branch with a displacement of four bytes (e8, e9, 0f 80 … 0f 8f) from anywhere in it may
/// lead to. Made by one pass, it serves every site of the segment; it stays true while patches are written, because their
/// jumps leave the segment.
#[derive(Clone, Copy)]
pub struct BranchMap<'a> {
    code: Code<'a>,
    /// One bit a byte of code.
    bits: &'a [u64],
}

impl<'a> BranchMap<'a> {
    /// Words of memory for a segment of `len` bytes: an eighth of its size.
    pub const fn words(len: usize) -> usize {
        len.div_ceil(64)
    }

    /// Looks through the whole of `code`, which takes about 0.6 µs a kilobyte. `bits` need not be clear.
    /// `None` if it has less than [`BranchMap::words`].
    pub fn new(code: Code<'a>, bits: &'a mut [u64]) -> Option<BranchMap<'a>> {
        let bits = bits.get_mut(..Self::words(code.bytes.len()))?;
        bits.fill(0);
        scan(code.bytes, |target| {
            if target < code.bytes.len() {
                bits[target / 64] |= 1 << (target % 64);
            }
        });
        Some(BranchMap { code, bits })
    }

    /// Takes up a map that [`BranchMap::new`] made earlier of the same code in the same memory.
    pub fn again(code: Code<'a>, bits: &'a [u64]) -> Option<BranchMap<'a>> {
        Some(BranchMap { code, bits: bits.get(..Self::words(code.bytes.len()))? })
    }

    /// The segment.
    pub fn code(&self) -> Code<'a> {
        self.code
    }

    /// Whether something in the segment may branch to one of the offsets `first..=last`.
    pub fn leads_into(&self, first: usize, last: usize) -> bool {
        let bit = |offset: usize| self.bits.get(offset / 64).is_some_and(|word| word >> (offset % 64) & 1 != 0);
        (first..=last).any(bit) || short_branch_into(self.code.bytes, first, last)
    }
}

/// Visits the target of everything that may be a long branch.
fn scan(code: &[u8], mut visit: impl FnMut(usize)) {
    let Some(end) = code.len().checked_sub(LONG - 1) else { return };
    let mut long = |at: usize| {
        let displacement = i32::from_le_bytes([code[at + 1], code[at + 2], code[at + 3], code[at + 4]]);
        visit((at + LONG).wrapping_add_signed(displacement as isize));
    };
    // The first byte has nothing before it.
    if end > 0 && code[0] & 0xfe == 0xe8 {
        long(0);
    }
    let mut at = 1;
    while at + 16 <= end {
        let mut found = opcodes(code, at);
        while found != 0 {
            long(at + found.trailing_zeros() as usize);
            found &= found - 1;
        }
        at += 16;
    }
    for at in at..end {
        if code[at] & 0xfe == 0xe8 || code[at] & 0xf0 == 0x80 && code[at - 1] == 0x0f {
            long(at);
        }
    }
}

/// Bits of the offsets in `code[at..at + 16]` that may be the last opcode byte of a long branch. `at` ≥ 1.
#[cfg(target_feature = "sse2")]
fn opcodes(code: &[u8], at: usize) -> u32 {
    use core::arch::x86_64::*;
    let (here, before) = (load(code, at), load(code, at - 1));
    // SAFETY: the feature is enabled for the whole crate.
    #[allow(unused_unsafe)]
    unsafe {
        let call_or_jump = _mm_cmpeq_epi8(_mm_and_si128(here, _mm_set1_epi8(-2)), _mm_set1_epi8(0xe8u8 as i8));
        let conditional = _mm_cmpeq_epi8(_mm_and_si128(here, _mm_set1_epi8(-16)), _mm_set1_epi8(-128));
        let escaped = _mm_cmpeq_epi8(before, _mm_set1_epi8(0x0f));
        _mm_movemask_epi8(_mm_or_si128(call_or_jump, _mm_and_si128(conditional, escaped))) as u32
    }
}

/// Sixteen bytes from `at` on.
#[cfg(target_feature = "sse2")]
fn load(code: &[u8], at: usize) -> core::arch::x86_64::__m128i {
    let bytes: &[u8] = &code[at..at + 16];
    // SAFETY: sixteen bytes are there, and the load needs no alignment.
    unsafe { core::arch::x86_64::_mm_loadu_si128(bytes.as_ptr().cast()) }
}

/// The same without vectors.
#[cfg(not(target_feature = "sse2"))]
fn opcodes(code: &[u8], at: usize) -> u32 {
    (0..16).fold(0, |bits, i| {
        let byte = code[at + i];
        let found = byte & 0xfe == 0xe8 || byte & 0xf0 == 0x80 && code[at + i - 1] == 0x0f;
        bits | (found as u32) << i
    })
}

/// Whether a branch with a displacement of one byte (`jmp`, `jcc`, `loop`, `jrcxz`) may lead into `first..=last`.
fn short_branch_into(code: &[u8], first: usize, last: usize) -> bool {
    let from = first.saturating_sub(2 + i8::MAX as usize);
    let to = (last + 127).min(code.len().saturating_sub(1));
    (from..to).any(|at| {
        let target = (at + 2).wrapping_add_signed(code[at + 1] as i8 as isize);
        let led = matches!(code[at], 0xeb | 0x70..=0x7f | 0xe0..=0xe3) && first <= target && target <= last;
        led && may_start(code, at)
    })
}
