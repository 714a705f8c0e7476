//! Where a function is left: at each `ret`, and where it jumps into another one. Probes for the return of a function (uretprobes) would
//! replace return addresses on the stack, which a commit would take for the program's.

use outlast_rewrite::decode::decode;
use outlast_rewrite::instruction::Flow;
use outlast_stacks::symbols::Code;

/// Offsets in the piece `of`; the others are what else belongs to the function. None: it has an instruction that is not understood.
pub fn exits(of: &Code, pieces: &[Code]) -> Option<Vec<u64>> {
    let is_own = |address: u64| pieces.iter().any(|piece| piece.contains(address));
    let (mut exits, mut at) = (Vec::new(), 0);
    while at < of.bytes.len() {
        let instruction = decode(&of.bytes[at..]).ok()?;
        let next = at + usize::from(instruction.len);
        let stays =
            |displacement: i32| is_own(of.address.wrapping_add(next as u64).wrapping_add_signed(displacement.into()));
        let leaves = match instruction.flow {
            Flow::Leave => true,
            Flow::Jump { displacement } => !stays(displacement),
            // It is left here, or is not: a breakpoint cannot tell.
            Flow::Branch { displacement, .. } if !stays(displacement) => return None,
            _ => false,
        };
        if leaves {
            exits.push(at as u64);
        }
        at = next;
    }
    Some(exits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(address: u64, bytes: &[u8]) -> Code {
        Code { address, offset: 0, bytes: bytes.into(), is_cold: false }
    }

    #[test]
    fn returns_and_jumps_elsewhere_are_exits_and_jumps_within_are_none() {
        // test edi, edi; je +1; ret; jmp -7 (to the start); jmp +0x100; repz ret
        let piece = code(0x1000, &[0x85, 0xff, 0x74, 1, 0xc3, 0xeb, 0xf9, 0xe9, 0, 1, 0, 0, 0xf3, 0xc3]);
        assert_eq!(exits(&piece, std::slice::from_ref(&piece)), Some(vec![4, 7, 12]));
        let cold = code(0x110c, &[0xc3]);
        assert_eq!(exits(&piece, &[piece.clone(), cold]), Some(vec![4, 12]));
    }

    #[test]
    fn who_may_leave_or_stay_cannot_be_seen_leaving() {
        // je +0x100; ret
        let piece = code(0x1000, &[0x0f, 0x84, 0, 1, 0, 0, 0xc3]);
        assert_eq!(exits(&piece, std::slice::from_ref(&piece)), None);
        let cold = code(0x1106, &[0xc3]);
        assert_eq!(exits(&piece, &[piece.clone(), cold]), Some(vec![6]));
    }

    #[test]
    fn what_is_not_understood_is_not_guessed() {
        let piece = code(0x1000, &[0x06, 0xc3]);
        assert_eq!(exits(&piece, std::slice::from_ref(&piece)), None);
    }
}
