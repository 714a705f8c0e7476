//! The list of page faults that a BPF program of the supervisor's writes, and the engine reads.

use core::sync::atomic::AtomicU64;

/// Addresses that the list holds; a power of two. The oldest is overwritten.
pub const ENTRIES: usize = 4096;

/// The only element of the BPF map. The kernel lets nobody but the BPF program write to it.
#[repr(C)]
pub struct FaultList {
    /// Faults ever listed. Fault `n` is at `addresses[n % ENTRIES]`, which is written after this is counted up and before
    /// the faulting instruction goes on: the entry itself tells whether it is there yet.
    pub count: AtomicU64,
    pub reserved: [u64; 7],
    /// Addresses of write accesses that met a page fault, in user mode or in the kernel: 48 bits, and above them the number
    /// of times that the list had gone round, modulo 2^16.
    pub addresses: [AtomicU64; ENTRIES],
}

/// Bits of an entry that are the address.
pub const ADDRESS_BITS: u32 = 48;

/// The address in an entry of the list; `None` if it is not yet that of fault `n`.
pub const fn address_of(entry: u64, n: u64) -> Option<u64> {
    let round = (n / ENTRIES as u64) as u16;
    if (entry >> ADDRESS_BITS) as u16 == round {
        Some(entry & ((1 << ADDRESS_BITS) - 1))
    } else {
        None
    }
}

/// How the engine learns which pages were written: values of [`crate::control::Control::fault_source`].
pub mod fault_source {
    /// Not known yet, or every written page is met by the engine itself.
    pub const NONE: u32 = 0;
    /// The number of faults, which tells when there is nothing to look for.
    pub const COUNT: u32 = 1;
    /// Addresses of the program's own faults, as samples of a perf event; the number tells whether there were others.
    pub const SAMPLES: u32 = 2;
    /// Addresses of all faults, from a [`super::FaultList`].
    pub const LIST: u32 = 3;
    /// Names in the order of the values.
    pub const NAMES: [&str; 4] = ["none", "count", "samples", "list"];
}

/// Offset of [`FaultList::count`], where the BPF program finds it.
pub const COUNT: usize = core::mem::offset_of!(FaultList, count);
/// Offset of [`FaultList::addresses`].
pub const ADDRESSES: usize = core::mem::offset_of!(FaultList, addresses);

const _: () = assert!(COUNT % 8 == 0 && ENTRIES.is_power_of_two());
