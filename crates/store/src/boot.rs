//! What tells one boot of the machine from another.

/// [`crate::Region::cache`] of all files in this boot; 0 if the kernel does not tell.
pub fn boot() -> u64 {
    let id = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    // FNV-1a, and never 0.
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    match id.is_empty() {
        true => 0,
        false => id.iter().fold(0xcbf2_9ce4_8422_2325, mix) | 1,
    }
}
