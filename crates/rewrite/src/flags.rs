//! Whether code after a system call still needs the arithmetic flags from before it.
//!
//! The kernel gives them back unchanged, the gate need not. Compilers treat a `syscall` as overwriting the flags, so only
//! assembler written by hand could depend on them; a site where it visibly does is left alone.

use crate::decode::decode;
use crate::instruction::Flow;

/// How many instructions are looked at. Flags live longer than this across a call are unheard of.
const HORIZON: usize = 12;

/// True if the code at `code[at..]` reads flags before it sets them, on the straight path and along `jmp`.
///
/// The search ends, with false, at a call, a return or an indirect jump (no calling convention passes flags), at
/// bytes that cannot be decoded, and where a jump leaves `code`.
pub(crate) fn live(code: &[u8], mut at: usize) -> bool {
    for _ in 0..HORIZON {
        let Some(Ok(instruction)) = code.get(at..).map(decode) else { return false };
        if instruction.reads_flags {
            return true;
        }
        if instruction.sets_flags {
            return false;
        }
        at += instruction.len as usize;
        match instruction.flow {
            Flow::Next => {}
            Flow::Jump { displacement } => match at.checked_add_signed(displacement as isize) {
                Some(target) => at = target,
                None => return false,
            },
            _ => return false,
        }
    }
    false
}
