//! The interpreter of classic BPF, over words that are known or not.

use crate::question::{ADDRESS, LENGTH};
use crate::{Instruction, Question, Verdict, Verdicts};

/// How many instructions one question may take.
pub const STEPS: u32 = 100_000;
/// How many ways may be waiting to be followed.
const WAYS: usize = 64;

const WORDS: usize = 16;

/// Classes, in the low three bits of an instruction's code.
mod class {
    pub const LD: u16 = 0;
    pub const LDX: u16 = 1;
    pub const ST: u16 = 2;
    pub const STX: u16 = 3;
    pub const ALU: u16 = 4;
    pub const JMP: u16 = 5;
    pub const RET: u16 = 6;
    pub const MISC: u16 = 7;
}

/// Where a load takes its word from.
mod mode {
    pub const IMM: u16 = 0x00;
    pub const ABS: u16 = 0x20;
    pub const MEM: u16 = 0x60;
    pub const LEN: u16 = 0x80;
    pub const MASK: u16 = 0xe0;
}

/// The source is the index register, not the constant.
const BY_X: u16 = 0x08;
/// RET: the accumulator, not the constant. MISC: from index register to accumulator.
const RET_A: u16 = 0x10;
const TXA: u16 = 0x80;

/// A word, if it is known.
type Word = Option<u32>;

/// Where one way through a filter has come to.
#[derive(Clone, Copy)]
struct Way {
    at: usize,
    a: Word,
    x: Word,
    memory: [Word; WORDS],
}

const BEGINNING: Way = Way { at: 0, a: Some(0), x: Some(0), memory: [None; WORDS] };

/// What an instruction leads to.
enum Step {
    Next,
    /// Both ways are possible.
    Both(usize, usize),
    Return(Word),
    /// Nothing that the kernel accepts.
    Invalid,
}

/// The value that the filter returns; `None` if something that is not known decides it, or if it is no valid filter.
pub fn verdict(filter: &[Instruction], question: &Question) -> Option<u32> {
    let mut way = BEGINNING;
    for _ in 0..=filter.len() {
        match way.step(filter, question) {
            Step::Next => {}
            Step::Return(value) => return value,
            Step::Both(..) | Step::Invalid => return None,
        }
    }
    None
}

/// What the filter may say.
pub fn verdicts(filter: &[Instruction], question: &Question) -> Verdicts {
    let (mut ways, mut count, mut found) = ([BEGINNING; WAYS], 1, Verdicts::NONE);
    for _ in 0..STEPS {
        if count == 0 {
            return found;
        }
        let way = &mut ways[count - 1];
        match way.step(filter, question) {
            Step::Next => {}
            Step::Return(Some(value)) => {
                found.insert(Verdict::of(value));
                count -= 1;
            }
            Step::Both(one, other) if count < WAYS => {
                way.at = one;
                ways[count] = Way { at: other, ..*way };
                count += 1;
            }
            _ => return Verdicts::ALL,
        }
    }
    Verdicts::ALL
}

/// Does it look at the address of the call, which is another one for what the engine does in the program's place?
pub fn reads_address(filter: &[Instruction]) -> bool {
    filter.iter().any(|i| i.code == class::LD | mode::ABS && (ADDRESS..ADDRESS + 8).contains(&i.k))
}

impl Way {
    fn step(&mut self, filter: &[Instruction], question: &Question) -> Step {
        let Some(&i) = filter.get(self.at) else { return Step::Invalid };
        self.at += 1;
        let operand = if i.code & BY_X != 0 { self.x } else { Some(i.k) };
        match i.code & 7 {
            class @ (class::LD | class::LDX) => {
                let word = match i.code & mode::MASK {
                    mode::IMM => Some(i.k),
                    mode::ABS if i.k < LENGTH && i.k % 4 == 0 => question.word(i.k),
                    mode::MEM if (i.k as usize) < WORDS => self.memory[i.k as usize],
                    mode::LEN => Some(LENGTH),
                    _ => return Step::Invalid,
                };
                *(if class == class::LD { &mut self.a } else { &mut self.x }) = word;
            }
            class @ (class::ST | class::STX) => {
                let Some(place) = self.memory.get_mut(i.k as usize) else { return Step::Invalid };
                *place = if class == class::ST { self.a } else { self.x };
            }
            class::ALU => return self.compute(i.code & 0xf0, operand),
            class::JMP => return self.jump(&i, operand),
            class::RET => return Step::Return(if i.code & RET_A != 0 { self.a } else { Some(i.k) }),
            class::MISC if i.code & TXA != 0 => self.a = self.x,
            class::MISC => self.x = self.a,
            _ => return Step::Invalid,
        }
        Step::Next
    }

    fn compute(&mut self, operation: u16, operand: Word) -> Step {
        /// What a division by zero ends a filter with: the thread's end.
        const BY_ZERO: Step = Step::Return(Some(0));
        let both = self.a.zip(operand);
        self.a = match operation {
            0x00 => both.map(|(a, b)| a.wrapping_add(b)),
            0x10 => both.map(|(a, b)| a.wrapping_sub(b)),
            0x20 => both.map(|(a, b)| a.wrapping_mul(b)),
            0x30 => match (self.a, operand) {
                (_, Some(0)) => return BY_ZERO,
                // It may be zero.
                (_, None) => return Step::Return(None),
                (a, Some(b)) => a.map(|a| a / b),
            },
            0x40 => both.map(|(a, b)| a | b),
            0x50 => match (self.a, operand) {
                (Some(0), _) | (_, Some(0)) => Some(0),
                _ => both.map(|(a, b)| a & b),
            },
            0x60 => both.map(|(a, b)| a.wrapping_shl(b)),
            0x70 => both.map(|(a, b)| a.wrapping_shr(b)),
            0x80 => self.a.map(u32::wrapping_neg),
            0xa0 => both.map(|(a, b)| a ^ b),
            _ => return Step::Invalid,
        };
        Step::Next
    }

    fn jump(&mut self, i: &Instruction, operand: Word) -> Step {
        let test: fn(u32, u32) -> bool = match i.code & 0xf0 {
            0x00 => {
                self.at = self.at.saturating_add(i.k as usize);
                return Step::Next;
            }
            0x10 => |a, b| a == b,
            0x20 => |a, b| a > b,
            0x30 => |a, b| a >= b,
            0x40 => |a, b| a & b != 0,
            _ => return Step::Invalid,
        };
        let (holds, fails) = (self.at + i.jt as usize, self.at + i.jf as usize);
        match self.a.zip(operand) {
            Some((a, b)) => self.at = if test(a, b) { holds } else { fails },
            None if holds == fails => self.at = holds,
            None => return Step::Both(holds, fails),
        }
        Step::Next
    }
}
