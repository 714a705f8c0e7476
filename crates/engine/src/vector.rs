//! Vector registers in a saved context: the standard format of XSAVE.

use core::arch::x86_64::__cpuid_count;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Bytes of a register.
pub const LEN: usize = 64;
const HEADER: usize = 512;
/// The first sixteen, their lowest 16 bytes.
const LOW: usize = 160;

/// A part of the registers: the component of XSAVE that holds it.
struct Part {
    component: u32,
    /// First register, and the byte of each that it begins with.
    from: (u8, usize),
    /// Bytes for each register.
    len: usize,
}

/// Bytes 16 to 31, and 32 to 63, of the first sixteen; all of the others.
const PARTS: [Part; 3] = [
    Part { component: 2, from: (0, 16), len: 16 },
    Part { component: 6, from: (0, 32), len: 32 },
    Part { component: 7, from: (16, 0), len: 64 },
];

/// Where each part lies, as soon as the processor was asked, which takes long on a virtual machine.
static OFFSETS: [AtomicU32; 3] = [const { AtomicU32::new(0) }; 3];

/// All bytes of a register, as far as the processor has it. `None`: the area does not reach so far.
pub fn register(area: &[u8], n: u8) -> Option<[u8; LEN]> {
    let in_use = u64::from_le_bytes(area.get(HEADER..HEADER + 8)?.try_into().ok()?);
    let mut register = [0; LEN];
    if n < 16 && in_use & 2 != 0 {
        let at = LOW + 16 * n as usize;
        register[..16].copy_from_slice(area.get(at..at + 16)?);
    }
    for (part, offset) in PARTS.iter().zip(&OFFSETS) {
        let Some(nth) = n.checked_sub(part.from.0).filter(|nth| *nth < 16) else { continue };
        if in_use >> part.component & 1 != 0 {
            let at = offset_of(part.component, offset) + nth as usize * part.len;
            register[part.from.1..part.from.1 + part.len].copy_from_slice(area.get(at..at + part.len)?);
        }
    }
    Some(register)
}

fn offset_of(component: u32, known: &AtomicU32) -> usize {
    let mut offset = known.load(Relaxed);
    if offset == 0 {
        offset = __cpuid_count(0xd, component).ebx;
        known.store(offset, Relaxed);
    }
    offset as usize
}
