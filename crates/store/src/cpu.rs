//! Which vector and checksum instructions the processor has.

/// Found once when a store is opened: CPUID is slow in a virtual machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// The CRC-32C instruction.
    pub sse42: bool,
    /// 32-byte compares; the operating system saves the registers.
    pub avx2: bool,
}

impl Cpu {
    /// What every x86-64 processor has.
    pub const PLAIN: Cpu = Cpu { sse42: false, avx2: false };

    /// Asks the processor.
    #[cfg(target_arch = "x86_64")]
    pub fn detect() -> Cpu {
        use core::arch::x86_64::{__cpuid, __cpuid_count};
        let (top, one) = (__cpuid(0).eax, __cpuid(1));
        let sse42 = one.ecx & (1 << 20) != 0;
        let osxsave = one.ecx & (1 << 27) != 0;
        // SAFETY: OSXSAVE says that XGETBV exists.
        let ymm_saved = osxsave && unsafe { extended_control_register() } & 6 == 6;
        let avx2 = top >= 7 && ymm_saved && __cpuid_count(7, 0).ebx & (1 << 5) != 0;
        Cpu { sse42, avx2 }
    }

    /// Asks the processor.
    #[cfg(not(target_arch = "x86_64"))]
    pub fn detect() -> Cpu {
        Cpu::PLAIN
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "xsave")]
fn extended_control_register() -> u64 {
    // SAFETY: register 0 exists wherever XGETBV does.
    unsafe { core::arch::x86_64::_xgetbv(0) }
}
