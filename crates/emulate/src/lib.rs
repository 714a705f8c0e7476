//! Makes one instruction that writes to memory, on a copy of what it writes to.
//!
//! Memory that a program shares with others is write-protected, so that each write can be committed before others see anything that
//! depends on it. An instruction that is made here needs no page that is opened for it, and no trap behind it: the caller reads what
//! lies at its target, has it changed, and puts it back by a mapping of its own.
//!
//! Pure functions over registers and bytes: no allocation, no I/O, nothing that is not async-signal-safe.
//!
//! 1. [`decode`] the bytes at the program's address. `None`: the instruction is none of those below; it is to be made by the processor.
//! 2. [`Write::target`] tells where it writes, and how many bytes.
//! 3. [`Write::make`] changes a copy of these bytes, and the registers, except for rip. String instructions have
//!    [`Write::string`] in its place: what is to be copied or stored lies elsewhere, and a page holds only a part of it.
//!
//! Known are moves, arithmetic, atomic operations, bits, shifts, set-on-condition, and stores of whole vector registers (SSE, AVX,
//! AVX-512 without masks): what compilers and libc write with. The arithmetic is done by the processor itself, so that flags, also those
//! that the manuals leave undefined, are its own.
#![no_std]

mod arithmetic;
mod decode;
mod make;
mod operand;
mod vector;

pub use decode::{decode, Write};
pub use make::{Element, Strings, Vectors};
pub use operand::Target;

/// Longest instruction of the architecture, in bytes.
pub const MAX_LEN: usize = 15;
/// Most bytes that one of them (but a string instruction) writes.
pub const MAX_WRITTEN: usize = 64;
