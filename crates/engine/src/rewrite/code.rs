//! Writing into code without making it writable.
//!
//! Through /proc/self/mem the kernel writes into private mappings whatever their protection, on a copy of the page; no
//! mapping is writable and executable at any moment, so policies against that (PR_SET_MDWE, SELinux) are not touched.
//! Where a kernel refuses such writes (`proc_mem.force_override`), nothing is rewritten.

use crate::access::Access;
use crate::own_descriptors::Passing;
use crate::proc;
use crate::state::engine;
use crate::sys::{nr, syscall};
use core::arch::asm;
use outlast_image::layout::ENGINE_FDS;

const O_RDWR: u64 = 2;

/// The process's memory, open for writing.
pub struct CodeMemory {
    file: Passing,
}

impl CodeMemory {
    /// `None` where the kernel refuses.
    pub fn open() -> Option<CodeMemory> {
        // SAFETY: only looks where the engine's descriptors are.
        let _access = Access::take(unsafe { engine() }.fds.own + ENGINE_FDS);
        let file = proc::open(c"/proc/self/mem", O_RDWR).ok()?;
        Some(CodeMemory { file })
    }

    /// Writes `bytes` to `address`, which nobody executes meanwhile. False if the kernel refuses, or the memory is not private.
    pub fn write(&self, address: u64, bytes: &[u8]) -> bool {
        // SAFETY: the callers name stubs of their own, code that they may patch, or memory being restored.
        let r = unsafe { syscall!(nr::PWRITE64, self.file.fd, bytes.as_ptr(), bytes.len(), address) };
        serialize();
        r == bytes.len() as i64
    }
}

const MEMBARRIER: u64 = 324;
const REGISTER_SYNC_CORE: u64 = 1 << 6;
const SYNC_CORE: u64 = 1 << 5;

/// Announces that there will be several threads that must learn of written code.
pub fn expect_threads() {
    // SAFETY: membarrier changes no memory.
    unsafe { syscall!(MEMBARRIER, REGISTER_SYNC_CORE, 0, 0) };
}

/// As [`serialize`], on every processor that runs a thread of this process.
pub fn serialize_all() {
    // SAFETY: as above.
    unsafe { syscall!(MEMBARRIER, SYNC_CORE, 0, 0) };
}

/// Makes the processor forget what it has fetched of the code: it was written by another address than that by which it is
/// executed, so nothing less will do (Intel SDM volume 3, 9.1.3).
fn serialize() {
    // SAFETY: returns to the next instruction, with everything as it was but two scratch registers.
    unsafe {
        asm!(
            "mov {a}, rsp",
            "mov {b}, ss",
            "push {b}",
            "push {a}",
            "pushfq",
            "mov {b}, cs",
            "push {b}",
            "lea {b}, [rip + 2f]",
            "push {b}",
            "iretq",
            "2:",
            a = out(reg) _,
            b = out(reg) _,
        );
    }
}
