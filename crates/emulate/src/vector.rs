//! Stores of vector registers: SSE, AVX and AVX-512.

use crate::decode::{Kind, Reader, Write};

/// What the opcode stores with this prefix (0, 0x66, 0xf3, 0xf2): bytes, 0 for the whole register, and the first byte.
fn stored(opcode: u8, prefix: u8, is_wide: bool) -> Option<(u8, u8)> {
    Some(match (opcode, prefix) {
        // movups, movupd, movaps, movapd, movntps, movntpd
        (0x11 | 0x29 | 0x2b, 0 | 0x66) => (0, 0),
        // movss, movsd
        (0x11, 0xf3) => (4, 0),
        (0x11, 0xf2) => (8, 0),
        // movlps, movlpd, movhps, movhpd
        (0x13, 0 | 0x66) => (8, 0),
        (0x17, 0 | 0x66) => (8, 8),
        // movdqa, movdqu, movntdq
        (0x7f, 0x66 | 0xf3) | (0xe7, 0x66) => (0, 0),
        // movq, movd
        (0xd6, 0x66) => (8, 0),
        (0x7e, 0x66) => (if is_wide { 8 } else { 4 }, 0),
        _ => return None,
    })
}

/// With legacy prefixes.
pub(crate) fn plain(r: &mut Reader, opcode: u8, modrm: u8) -> Option<Write> {
    let prefix = match (r.repeat, r.operand_size) {
        (0, true) => 0x66,
        (repeat, _) => repeat,
    };
    let (size, from) = stored(opcode, prefix, r.rex & 8 != 0)?;
    let n = modrm >> 3 & 7 | (r.rex & 4) << 1;
    let operand = r.operand(modrm, 1)?;
    let size = if size == 0 { 16 } else { size };
    Some(Write { len: r.at as u8, kind: Kind::Vector { n, from }, size, operand })
}

/// VEX (0xc4, 0xc5) and EVEX (0x62).
pub(crate) fn extended(r: &mut Reader, first: u8) -> Option<Write> {
    const PREFIXES: [u8; 4] = [0, 0x66, 0xf3, 0xf2];
    if first == 0x62 {
        return masked(r);
    }
    // Bits are inverted where they extend a register's number.
    let (high, last) = if first == 0xc5 {
        let last = r.byte()?;
        (last & 0x80 | 0x61, last & 0x7f)
    } else {
        (r.byte()?, r.byte()?)
    };
    r.rex = !high >> 5 & 7;
    let r_bit = r.rex & 4;
    let is_wide = first == 0xc4 && last & 0x80 != 0;
    if high & 0x1f != 1 || last & 0x78 != 0x78 {
        return None;
    }
    let opcode = r.byte()?;
    let modrm = r.byte()?;
    let (size, from) = stored(opcode, PREFIXES[(last & 3) as usize], is_wide)?;
    let is_long = last & 4 != 0;
    let size = match size {
        0 if is_long => 32,
        0 => 16,
        _ if is_long => return None,
        size => size,
    };
    let operand = r.operand(modrm, 1)?;
    let n = modrm >> 3 & 7 | r_bit << 1;
    Some(Write { len: r.at as u8, kind: Kind::Vector { n, from }, size, operand })
}

/// EVEX: whole registers, no mask.
fn masked(r: &mut Reader) -> Option<Write> {
    let [first, second, third] = [r.byte()?, r.byte()?, r.byte()?];
    let is_plain = first & 0x0f == 1 && second & 0x7c == 0x7c && third & 0x9f == 0x08;
    let length = third >> 5 & 3;
    if !is_plain || length == 3 {
        return None;
    }
    let opcode = r.byte()?;
    let modrm = r.byte()?;
    let is_wide = second & 0x80 != 0;
    match (opcode, second & 3) {
        (0x11 | 0x29 | 0x2b, 0) | (0xe7, 1) if !is_wide => (),
        (0x11 | 0x29 | 0x2b, 1) if is_wide => (),
        (0x7f, 1..=3) => (),
        _ => return None,
    }
    r.rex = !first >> 5 & 7;
    let n = modrm >> 3 & 7 | (r.rex & 4) << 1 | (!first & 0x10);
    let size = 16u8 << length;
    let operand = r.operand(modrm, size as i64)?;
    Some(Write { len: r.at as u8, kind: Kind::Vector { n, from: 0 }, size, operand })
}
