//! What the filters that a program installs on itself (seccomp, classic BPF) say of a system call.
//!
//! Two questions, one interpreter. Of a call of the program all is known, and the answer is one [`Verdict`]: the engine asks before
//! it serves the call, since it serves many in ways that the kernel would not filter. Of the calls that the engine makes itself
//! ([`needs`]) arguments are not known beforehand, and the answer is a set, [`Verdicts`]: where an instruction depends on what is not
//! known, both ways are followed. That set may hold more than can come, and never less.
//!
//! Pure functions over words: no allocation, no I/O, nothing that is not async-signal-safe. A filter cannot loop; it may have
//! many ways through it, and after [`STEPS`] instructions everything counts as possible.
#![no_std]

pub mod needs;
mod question;
mod verdict;
mod walk;

pub use question::{Instruction, Question};
pub use verdict::{strictest, Verdict, Verdicts};
pub use walk::{reads_address, verdict, verdicts, STEPS};

/// Most instructions that the kernel takes as one filter.
pub const LONGEST: usize = 4096;
