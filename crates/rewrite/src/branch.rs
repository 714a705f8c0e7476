//! Direct branches into bytes that are to be overwritten.
//!
//! Any byte that could begin a direct branch counts as one, at every alignment, in code and in what only looks like it: a
//! site refused for nothing costs microseconds, a branch into the middle of a jump costs the program. Short branches are
//! so common among random bytes that one more question is asked: whether an instruction can start there at all.

use crate::boundary::may_start;

/// Targets to look for in one pass: ranges of offsets into the segment.
pub struct Targets<const N: usize> {
    ranges: [Range; N],
    len: usize,
    /// One bit for each 16 bytes of target, modulo its size: most targets are passed over by one look.
    filter: [u64; FILTER],
}

#[derive(Clone, Copy)]
struct Range {
    first: usize,
    last: usize,
    hit: bool,
}

const FILTER: usize = 256;
const GRAIN: u32 = 4;

/// Bytes that a branch with a displacement of four bytes ends after its last opcode byte.
const LONG: usize = 5;

impl<const N: usize> Default for Targets<N> {
    fn default() -> Self {
        Targets { ranges: [Range { first: 0, last: 0, hit: false }; N], len: 0, filter: [0; FILTER] }
    }
}

impl<const N: usize> Targets<N> {
    /// Watches the offsets `first..=last`; returns the number to ask [`Targets::hit`] with, or `None` if there is no room left.
    pub fn watch(&mut self, first: usize, last: usize) -> Option<usize> {
        let number = self.len;
        *self.ranges.get_mut(number)? = Range { first, last, hit: false };
        self.len += 1;
        for grain in (first >> GRAIN)..=(last >> GRAIN) {
            self.filter[grain / 64 % FILTER] |= 1 << (grain % 64);
        }
        Some(number)
    }

    /// Whether something may branch to an offset of range `number`.
    pub fn hit(&self, number: usize) -> bool {
        self.ranges[number].hit
    }

    fn visit(&mut self, target: usize) {
        let grain = target >> GRAIN;
        if self.filter[grain / 64 % FILTER] >> (grain % 64) & 1 != 0 {
            for range in &mut self.ranges[..self.len] {
                range.hit |= range.first <= target && target <= range.last;
            }
        }
    }

    /// Looks through the whole of `code` for branches to the watched ranges: one pass for all of them.
    pub fn scan(&mut self, code: &[u8]) {
        if self.len == 0 {
            return;
        }
        self.scan_long(code);
        for number in 0..self.len {
            let Range { first, last, .. } = self.ranges[number];
            self.ranges[number].hit |= short_branch_into(code, first, last);
        }
    }

    /// Branches with a displacement of four bytes: e8, e9 and 0f 80 … 0f 8f.
    fn scan_long(&mut self, code: &[u8]) {
        let Some(end) = code.len().checked_sub(LONG - 1) else { return };
        let mut at = 0;
        // The first byte has nothing before it.
        if end > 0 && code[0] & 0xfe == 0xe8 {
            self.long(code, 0);
        }
        at += 1;
        while at + 16 <= end {
            let mut found = opcodes(code, at);
            while found != 0 {
                self.long(code, at + found.trailing_zeros() as usize);
                found &= found - 1;
            }
            at += 16;
        }
        while at < end {
            if code[at] & 0xfe == 0xe8 || code[at] & 0xf0 == 0x80 && code[at - 1] == 0x0f {
                self.long(code, at);
            }
            at += 1;
        }
    }

    /// A branch whose last opcode byte is at `at`, four bytes of displacement behind it.
    fn long(&mut self, code: &[u8], at: usize) {
        let displacement = i32::from_le_bytes([code[at + 1], code[at + 2], code[at + 3], code[at + 4]]);
        self.visit((at + LONG).wrapping_add_signed(displacement as isize));
    }
}

/// Bits of the offsets in `code[at..at + 16]` that may be the last opcode byte of a long branch. `at` ≥ 1.
#[cfg(target_feature = "sse2")]
fn opcodes(code: &[u8], at: usize) -> u32 {
    use core::arch::x86_64::*;
    let (here, before) = (load(code, at), load(code, at - 1));
    // SAFETY: the feature is enabled for the whole crate.
    unsafe {
        let byte = |value: u8| _mm_set1_epi8(value as i8);
        let call_or_jump = _mm_cmpeq_epi8(_mm_and_si128(here, byte(0xfe)), byte(0xe8));
        let conditional = _mm_cmpeq_epi8(_mm_and_si128(here, byte(0xf0)), byte(0x80));
        let escaped = _mm_cmpeq_epi8(before, byte(0x0f));
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
