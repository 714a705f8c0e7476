//! Plans the rewriting of hot `syscall` sites into jumps to the engine's gate.
//!
//! Pure functions over bytes: no allocation, no I/O, no locks, nothing that is not async-signal-safe. The caller finds
//! the code, maps the areas and writes the bytes. Planning takes less than 8 KB of stack.
//!
//! ```text
//! program                      stub (within 2 GB of the program)         engine
//!   mov $1,%eax   → jmp stub     mov $1,%eax
//!   syscall                      E: lea tail(%rip),%rcx
//!   cmp $-4096,%rax                 jmp *gate(%rip)             →        gate: … jmp *%rcx
//!                                 syscall                     ← (not protected, or once more)
//!   …             ←              tail: jmp back                 ←
//! ```
//!
//! # What a call may change
//!
//! `syscall` overwrites rcx and r11, and so may the gate; it gets the tail's address in rcx, as if the `syscall` right before
//! the tail had been executed, and must return there (or go to that `syscall` to have it executed) with
//! every other general register, the vector state, the direction flag and the stack (the 128 bytes below rsp included)
//! as the kernel would have left them. Arithmetic flags survive a `syscall` but need not survive the gate: a site whose
//! following code visibly uses them is refused.
//!
//! # How it is used
//!
//! 1. [`BranchMap::new`], once for an executable segment. [`plan()`]; if it refuses, [`RefusedSites::insert`], and no more of it.
//! 2. [`StubAreas::place`]; on [`Refusal::Full`], map [`AREA_LEN`] bytes at [`Reach::nearest_gap`], [`StubAreas::add`], again.
//! 3. [`Plan::link`] makes the [`Patch`]: write the stub; check [`Overwrite::still_valid`]; write as [`Overwrite::strategy`] says.
//! 4. Threads that are to go on inside the overwritten bytes go on at [`Stub::stub_address`], at once or when they come back
//!    from a signal frame or a commit. The thread that is in the call itself is one of them, unless the plan is of the
//!    first form (see [`mod@plan`]).
//! 5. Code that is unmapped or replaced: [`StubAreas::drop_range`], [`RefusedSites::drop_range`].
//!
//! A thread's address inside a stub is none of the program's: [`Stub::program_address`] translates it for signal frames,
//! debuggers and commits.
#![no_std]

pub mod area;
pub mod boundary;
pub mod branch;
pub mod code;
pub mod decode;
mod emit;
mod flags;
mod form;
pub mod instruction;
mod opcode;
pub mod overwrite;
pub mod patch;
pub mod place;
pub mod plan;
pub mod refusal;
pub mod refused;
mod region;
pub mod stub;

pub use area::StubAreas;
pub use branch::BranchMap;
pub use code::Code;
pub use overwrite::{Overwrite, WriteStrategy};
pub use patch::Patch;
pub use place::{Reach, AREA_LEN};
pub use plan::{plan, Plan};
pub use refusal::{Obstacle, Refusal};
pub use refused::RefusedSites;
pub use region::MAX_PATCH;
pub use stub::{Stub, STUB_LEN};
