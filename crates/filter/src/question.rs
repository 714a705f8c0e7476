//! What a filter is and what it sees.

use bytemuck::{Pod, Zeroable};

/// `struct sock_filter`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Instruction {
    pub code: u16,
    /// How many instructions to skip if a test holds, and if not.
    pub jt: u8,
    pub jf: u8,
    pub k: u32,
}

/// `struct seccomp_data` of an x86-64 call, as far as it is known.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    pub nr: u32,
    /// Address behind the instruction that makes the call.
    pub address: Option<u64>,
    pub args: [Option<u64>; 6],
}

const AUDIT_ARCH_X86_64: u32 = 0xc000_003e;
/// Where the structure has its fields.
pub(crate) const ADDRESS: u32 = 8;
const ARGS: u32 = 16;
/// Its length in bytes.
pub(crate) const LENGTH: u32 = 64;

impl Question {
    /// A call of which only the number is known.
    pub const fn any(nr: u32) -> Question {
        Question { nr, address: None, args: [None; 6] }
    }

    /// The same with one argument.
    pub const fn with(nr: u32, arg: usize, value: u64) -> Question {
        let mut question = Question::any(nr);
        question.args[arg] = Some(value);
        question
    }

    /// The aligned word at `offset`, which lies within the structure.
    pub(crate) fn word(&self, offset: u32) -> Option<u32> {
        let half = |whole: u64| if offset % 8 == 0 { whole as u32 } else { (whole >> 32) as u32 };
        match offset {
            0 => Some(self.nr),
            4 => Some(AUDIT_ARCH_X86_64),
            ADDRESS..ARGS => self.address.map(half),
            _ => self.args.get(((offset - ARGS) / 8) as usize).copied().flatten().map(half),
        }
    }
}
