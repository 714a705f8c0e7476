//! What each opcode is followed by, and what it does to the flags: the decoder's tables.

/// A ModRM byte follows (with SIB and displacement as it says).
pub(crate) const MODRM: u16 = 1 << 0;
/// One byte of immediate.
pub(crate) const IMM8: u16 = 1 << 1;
/// Two bytes of immediate, besides any other.
pub(crate) const IMM16: u16 = 1 << 2;
/// Four bytes of immediate, two with an operand-size prefix.
pub(crate) const IMMZ: u16 = 1 << 3;
/// `mov r, imm`: as [`IMMZ`], but eight bytes with REX.W.
pub(crate) const IMMV: u16 = 1 << 4;
/// An absolute address of eight bytes, four with an address-size prefix.
pub(crate) const MOFFS: u16 = 1 << 5;
/// A branch with a displacement of one byte.
pub(crate) const REL8: u16 = 1 << 6;
/// A branch with a displacement of four bytes.
pub(crate) const REL32: u16 = 1 << 7;
/// Not an instruction that a program could execute in 64-bit mode (or a prefix, or an escape).
pub(crate) const INVALID: u16 = 1 << 8;
/// Does the same at another address once its rip-relative operand is re-based. A closed list: what is not on it stays put.
pub(crate) const MOVES: u16 = 1 << 9;
/// Depends on arithmetic flags.
pub(crate) const READS: u16 = 1 << 10;
/// Overwrites carry, zero, sign, overflow and parity, whatever its operands are.
pub(crate) const SETS: u16 = 1 << 11;

const fn fill(mut table: [u16; 256], first: usize, last: usize, bits: u16) -> [u16; 256] {
    let mut i = first;
    while i <= last {
        table[i] = bits;
        i += 1;
    }
    table
}

/// One-byte opcodes. Groups (80–83, 8f, c6, c7, f6, f7, fe, ff, shifts) are refined by the decoder.
pub(crate) const ONE: [u16; 256] = {
    let mut t = [INVALID; 256];
    let mut operation = 0;
    while operation < 8 {
        // add, or, adc, sbb, and, sub, xor, cmp
        let flags = MOVES | SETS | if operation == 2 || operation == 3 { READS } else { 0 };
        let base = operation * 8;
        t = fill(t, base, base + 3, MODRM | flags);
        t[base + 4] = IMM8 | flags;
        t[base + 5] = IMMZ | flags;
        operation += 1;
    }
    t = fill(t, 0x50, 0x5f, MOVES);
    t[0x63] = MODRM | MOVES;
    t[0x68] = IMMZ | MOVES;
    t[0x69] = MODRM | IMMZ | MOVES;
    t[0x6a] = IMM8 | MOVES;
    t[0x6b] = MODRM | IMM8 | MOVES;
    t = fill(t, 0x6c, 0x6f, 0);
    t = fill(t, 0x70, 0x7f, REL8 | READS | MOVES);
    t[0x80] = MODRM | IMM8 | MOVES | SETS;
    t[0x81] = MODRM | IMMZ | MOVES | SETS;
    t[0x83] = MODRM | IMM8 | MOVES | SETS;
    t = fill(t, 0x84, 0x85, MODRM | MOVES | SETS);
    t = fill(t, 0x86, 0x8b, MODRM | MOVES);
    t[0x8c] = MODRM;
    t[0x8d] = MODRM | MOVES;
    t[0x8e] = MODRM;
    t[0x8f] = MODRM | MOVES;
    t = fill(t, 0x90, 0x99, MOVES);
    t[0x9b] = 0;
    t[0x9c] = READS;
    t[0x9d] = SETS;
    t[0x9e] = 0;
    t[0x9f] = READS;
    t = fill(t, 0xa0, 0xa3, MOFFS | MOVES);
    t = fill(t, 0xa4, 0xa7, 0);
    t[0xa8] = IMM8 | MOVES | SETS;
    t[0xa9] = IMMZ | MOVES | SETS;
    t = fill(t, 0xaa, 0xaf, 0);
    t = fill(t, 0xb0, 0xb7, IMM8 | MOVES);
    t = fill(t, 0xb8, 0xbf, IMMV | MOVES);
    t = fill(t, 0xc0, 0xc1, MODRM | IMM8 | MOVES);
    t[0xc2] = IMM16 | MOVES;
    t[0xc3] = MOVES;
    t[0xc6] = MODRM | IMM8 | MOVES;
    t[0xc7] = MODRM | IMMZ | MOVES;
    t[0xc8] = IMM16 | IMM8;
    t[0xc9] = MOVES;
    t[0xca] = IMM16;
    t[0xcb] = 0;
    t[0xcc] = 0;
    t[0xcd] = IMM8;
    t[0xcf] = 0;
    t = fill(t, 0xd0, 0xd3, MODRM | MOVES);
    t[0xd7] = 0;
    t = fill(t, 0xd8, 0xdf, MODRM);
    t = fill(t, 0xe0, 0xe1, REL8 | READS);
    t = fill(t, 0xe2, 0xe3, REL8);
    t = fill(t, 0xe4, 0xe7, IMM8);
    t[0xe8] = REL32;
    t[0xe9] = REL32 | MOVES;
    t[0xeb] = REL8 | MOVES;
    t = fill(t, 0xec, 0xef, 0);
    t[0xf1] = 0;
    t[0xf4] = 0;
    t[0xf5] = READS;
    t = fill(t, 0xf6, 0xf7, MODRM | MOVES);
    t = fill(t, 0xf8, 0xf9, 0);
    t = fill(t, 0xfa, 0xfb, 0);
    t = fill(t, 0xfc, 0xfd, 0);
    t = fill(t, 0xfe, 0xff, MODRM | MOVES);
    t
};

/// Opcodes after 0F; also the lengths of VEX and EVEX map 1.
pub(crate) const TWO: [u16; 256] = {
    let mut t = [INVALID; 256];
    t = fill(t, 0x00, 0x03, MODRM);
    t[0x05] = 0;
    t[0x0b] = 0;
    t[0x0d] = MODRM;
    t[0x0e] = 0;
    t[0x0f] = MODRM | IMM8;
    t = fill(t, 0x10, 0x11, MODRM | MOVES);
    t = fill(t, 0x12, 0x1e, MODRM);
    t[0x1f] = MODRM | MOVES;
    t = fill(t, 0x28, 0x29, MODRM | MOVES);
    t = fill(t, 0x2a, 0x2d, MODRM);
    t = fill(t, 0x2e, 0x2f, MODRM | SETS);
    t[0x31] = 0;
    t[0x33] = 0;
    t[0x34] = 0;
    t[0x37] = 0;
    t = fill(t, 0x40, 0x4f, MODRM | READS | MOVES);
    t = fill(t, 0x50, 0x6d, MODRM);
    t[0x57] = MODRM | MOVES;
    t = fill(t, 0x6e, 0x6f, MODRM | MOVES);
    t = fill(t, 0x70, 0x73, MODRM | IMM8);
    t = fill(t, 0x74, 0x76, MODRM);
    t[0x77] = 0;
    t[0x79] = MODRM;
    t = fill(t, 0x7c, 0x7d, MODRM);
    t = fill(t, 0x7e, 0x7f, MODRM | MOVES);
    t = fill(t, 0x80, 0x8f, REL32 | READS | MOVES);
    t = fill(t, 0x90, 0x9f, MODRM | READS | MOVES);
    t = fill(t, 0xa0, 0xa2, 0);
    t[0xa3] = MODRM | MOVES;
    t = fill(t, 0xa6, 0xa7, MODRM);
    t[0xa4] = MODRM | IMM8 | MOVES;
    t[0xa5] = MODRM | MOVES;
    t = fill(t, 0xa8, 0xa9, 0);
    t[0xab] = MODRM | MOVES;
    t[0xac] = MODRM | IMM8 | MOVES;
    t[0xad] = MODRM | MOVES;
    t[0xae] = MODRM;
    t[0xaf] = MODRM | MOVES;
    t = fill(t, 0xb0, 0xb1, MODRM | MOVES | SETS);
    t[0xb2] = MODRM;
    t[0xb3] = MODRM | MOVES;
    t = fill(t, 0xb4, 0xb5, MODRM);
    t = fill(t, 0xb6, 0xb7, MODRM | MOVES);
    t = fill(t, 0xb8, 0xb9, MODRM);
    t[0xba] = MODRM | IMM8 | MOVES;
    t = fill(t, 0xbb, 0xbf, MODRM | MOVES);
    t = fill(t, 0xc0, 0xc1, MODRM | MOVES | SETS);
    t[0xc2] = MODRM | IMM8;
    t[0xc3] = MODRM;
    t = fill(t, 0xc4, 0xc6, MODRM | IMM8);
    t[0xc7] = MODRM;
    t = fill(t, 0xc8, 0xcf, MOVES);
    t = fill(t, 0xd0, 0xff, MODRM);
    t[0xd6] = MODRM | MOVES;
    t[0xef] = MODRM | MOVES;
    t
};
