//! Arithmetic with its flags, done by the processor.

use core::arch::asm;

/// Carry, parity, adjust, zero, sign, overflow.
const ARITHMETIC: u64 = 0x8d5;

/// With a value that the instruction names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    Add,
    Or,
    Adc,
    Sbb,
    And,
    Sub,
    Xor,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unary {
    Inc,
    Dec,
    Not,
    Neg,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shift {
    Rol,
    Ror,
    Rcl,
    Rcr,
    Shl,
    Shr,
    Sar,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bit {
    Set,
    Reset,
    Complement,
}

/// `flags`, of which the arithmetic ones are those that are found in `by`.
fn joined(flags: u64, by: u64) -> u64 {
    flags & !ARITHMETIC | by & ARITHMETIC
}

/// One instruction on registers: the left operand's new value, and flags.
macro_rules! on_registers {
    ($instruction:literal, $a:expr, $b:expr, $flags:expr, $form:tt, $right:literal) => {{
        let (mut a, mut flags): (u64, u64) = ($a, $flags & ARITHMETIC);
        // SAFETY: changes two registers and the arithmetic flags, which it sets before.
        unsafe {
            asm!(
                "push {flags}",
                "popfq",
                concat!($instruction, " {a:", $form, "}", $right),
                "pushfq",
                "pop {flags}",
                flags = inout(reg) flags,
                a = inout(reg_abcd) a,
                in("rcx") $b,
            );
        }
        (a, joined($flags, flags))
    }};
}

macro_rules! by_size {
    ($instruction:literal, $size:expr, $a:expr, $b:expr, $flags:expr) => {
        match $size {
            1 => on_registers!($instruction, $a, $b, $flags, "l", ", cl"),
            2 => on_registers!($instruction, $a, $b, $flags, "x", ", cx"),
            4 => on_registers!($instruction, $a, $b, $flags, "e", ", ecx"),
            _ => on_registers!($instruction, $a, $b, $flags, "r", ", rcx"),
        }
    };
}

macro_rules! alone {
    ($instruction:literal, $size:expr, $a:expr, $flags:expr) => {
        match $size {
            1 => on_registers!($instruction, $a, 0u64, $flags, "l", ""),
            2 => on_registers!($instruction, $a, 0u64, $flags, "x", ""),
            4 => on_registers!($instruction, $a, 0u64, $flags, "e", ""),
            _ => on_registers!($instruction, $a, 0u64, $flags, "r", ""),
        }
    };
}

macro_rules! by_count {
    ($instruction:literal, $size:expr, $a:expr, $b:expr, $flags:expr) => {
        match $size {
            1 => on_registers!($instruction, $a, $b, $flags, "l", ", cl"),
            2 => on_registers!($instruction, $a, $b, $flags, "x", ", cl"),
            4 => on_registers!($instruction, $a, $b, $flags, "e", ", cl"),
            _ => on_registers!($instruction, $a, $b, $flags, "r", ", cl"),
        }
    };
}

pub fn binary(what: Binary, size: usize, a: u64, b: u64, flags: u64) -> (u64, u64) {
    match what {
        Binary::Add => by_size!("add", size, a, b, flags),
        Binary::Or => by_size!("or", size, a, b, flags),
        Binary::Adc => by_size!("adc", size, a, b, flags),
        Binary::Sbb => by_size!("sbb", size, a, b, flags),
        Binary::And => by_size!("and", size, a, b, flags),
        Binary::Sub => by_size!("sub", size, a, b, flags),
        Binary::Xor => by_size!("xor", size, a, b, flags),
    }
}

pub fn unary(what: Unary, size: usize, a: u64, flags: u64) -> (u64, u64) {
    match what {
        Unary::Inc => alone!("inc", size, a, flags),
        Unary::Dec => alone!("dec", size, a, flags),
        Unary::Not => alone!("not", size, a, flags),
        Unary::Neg => alone!("neg", size, a, flags),
    }
}

pub fn shift(what: Shift, size: usize, a: u64, count: u64, flags: u64) -> (u64, u64) {
    match what {
        Shift::Rol => by_count!("rol", size, a, count, flags),
        Shift::Ror => by_count!("ror", size, a, count, flags),
        Shift::Rcl => by_count!("rcl", size, a, count, flags),
        Shift::Rcr => by_count!("rcr", size, a, count, flags),
        Shift::Shl => by_count!("shl", size, a, count, flags),
        Shift::Shr => by_count!("shr", size, a, count, flags),
        Shift::Sar => by_count!("sar", size, a, count, flags),
    }
}

/// `size` is 2, 4 or 8; the bit is taken modulo the operand's length.
pub fn bit(what: Bit, size: usize, a: u64, number: u64, flags: u64) -> (u64, u64) {
    macro_rules! by_three {
        ($instruction:literal) => {
            match size {
                2 => on_registers!($instruction, a, number, flags, "x", ", cx"),
                4 => on_registers!($instruction, a, number, flags, "e", ", ecx"),
                _ => on_registers!($instruction, a, number, flags, "r", ", rcx"),
            }
        };
    }
    match what {
        Bit::Set => by_three!("bts"),
        Bit::Reset => by_three!("btr"),
        Bit::Complement => by_three!("btc"),
    }
}

/// The flags after `cmp`.
pub fn compared(size: usize, a: u64, b: u64, flags: u64) -> u64 {
    by_size!("cmp", size, a, b, flags).1
}

/// Is the condition with this code (0 to 15) fulfilled?
pub fn holds(condition: u8, flags: u64) -> bool {
    let flag = |bit: u32| flags >> bit & 1 != 0;
    let (carry, parity, zero, sign, overflow) = (flag(0), flag(2), flag(6), flag(7), flag(11));
    let holds = match condition >> 1 & 7 {
        0 => overflow,
        1 => carry,
        2 => zero,
        3 => carry || zero,
        4 => sign,
        5 => parity,
        6 => sign != overflow,
        _ => zero || sign != overflow,
    };
    holds != (condition & 1 != 0)
}
