//! Conditional jumps: recognising one, whether it will be taken, and where its other way leads.

const CARRY: u64 = 1 << 0;
const PARITY: u64 = 1 << 2;
const ZERO: u64 = 1 << 6;
const SIGN: u64 = 1 << 7;
const OVERFLOW: u64 = 1 << 11;

/// Where the jump at `at` will *not* go; `None` if there is no conditional jump.
pub fn other_way(code: &[u8], at: u64, eflags: u64) -> Option<u64> {
    let (condition, length, displacement) = match *code {
        [op @ 0x70..=0x7f, to, ..] => (op & 15, 2, i64::from(to as i8)),
        [0x0f, op @ 0x80..=0x8f, a, b, c, d, ..] => (op & 15, 6, i64::from(i32::from_le_bytes([a, b, c, d]))),
        _ => return None,
    };
    let next = at.wrapping_add(length);
    Some(if holds(condition, eflags) { next } else { next.wrapping_add_signed(displacement) })
}

/// Intel SDM volume 1, appendix B: conditions in pairs, the odd one the opposite.
fn holds(condition: u8, eflags: u64) -> bool {
    let is = |flag: u64| eflags & flag != 0;
    let less = is(SIGN) != is(OVERFLOW);
    let first = match condition >> 1 {
        0 => is(OVERFLOW),
        1 => is(CARRY),
        2 => is(ZERO),
        3 => is(CARRY) || is(ZERO),
        4 => is(SIGN),
        5 => is(PARITY),
        6 => less,
        _ => less || is(ZERO),
    };
    first != (condition & 1 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jump_that_is_taken_goes_on_and_one_that_is_not_jumps() {
        // je +16
        assert_eq!(other_way(&[0x74, 0x10], 100, ZERO), Some(102));
        assert_eq!(other_way(&[0x74, 0x10], 100, 0), Some(118));
        // jne -2, near
        assert_eq!(other_way(&[0x0f, 0x85, 0xfe, 0xff, 0xff, 0xff], 100, ZERO), Some(104));
        // jl, jge
        assert_eq!(other_way(&[0x7c, 4], 0, SIGN), Some(2));
        assert_eq!(other_way(&[0x7d, 4], 0, SIGN), Some(6));
        assert_eq!(other_way(&[0x90, 0x90], 0, 0), None);
    }
}
