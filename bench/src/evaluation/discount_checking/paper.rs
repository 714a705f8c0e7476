//! What Discount Checking (Lowell and Chen, University of Michigan, 1998) states of itself, and where.

/// A row of Table 2: running times in seconds, overhead in percent, sizes of the undo log in KB.
pub struct Row {
    pub name: &'static str,
    pub kind: &'static str,
    pub original_s: f64,
    pub checked_s: f64,
    pub overhead: f64,
    pub checkpoints: u32,
    pub average_kb: u32,
    pub largest_kb: u32,
    /// The program that stands for it here.
    pub ours: &'static str,
}

/// Table 2, "Application Overhead".
pub const TABLE_2: [Row; 4] = [
    row("vi", "editor", [881.90, 882.76, 0.1], [7940, 74, 144], "nvi"),
    row("magic", "CAD", [89.54, 90.04, 0.6], [208, 126, 734], "magic"),
    row("oleo", "spreadsheet", [57.91, 58.02, 0.2], [396, 94, 123], "sc"),
    row("rogue", "game", [16.51, 16.58, 0.4], [231, 49, 82], "hack"),
];

const fn row(
    name: &'static str,
    kind: &'static str,
    [original_s, checked_s, overhead]: [f64; 3],
    [checkpoints, average_kb, largest_kb]: [u32; 3],
    ours: &'static str,
) -> Row {
    Row { name, kind, original_s, checked_s, overhead, checkpoints, average_kb, largest_kb, ours }
}

/// The machine of Table 1.
pub const MACHINE: &str =
    "Pentium II of 400 MHz with 16 + 16 KB and 512 KB of cache, 128 MB of SDRAM, FreeBSD 2.2.7 with Rio (Table 1)";

/// Bytes that fit into its second cache.
const CACHE: u64 = 512 << 10;
const PAGE: u64 = 4096;

/// Figure 2 in microseconds, as far as its text tells: "the minimum overhead is 50 µs per checkpoint", for a single page; each page
/// takes "45 µs" and "32 µs for working sets that fit in the L2 cache". The curve itself is a picture that the text does not have.
pub fn checkpoint_us(bytes: u64) -> f64 {
    let more = (bytes / PAGE).saturating_sub(1) as f64;
    50.0 + more * if bytes <= CACHE { 32.0 } else { 45.0 }
}

/// What section 5.1 states in so many words: "touches 1 MB of data during an interval will see 12 ms overhead".
pub const STATED_POINTS: [(u64, f64); 2] = [(4096, 50.0), (1 << 20, 12_000.0)];

/// Overhead in percent with a checkpoint every second, of ijpeg and m88ksim (section 5.3).
pub const EVERY_SECOND: [f64; 2] = [6.0, 10.0];

/// The programs of Figure 3 and those that stand for them here.
pub const FIGURE_3: [(&str, &str); 2] = [("ijpeg", "cjpeg"), ("m88ksim", "lua5.4")];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_curve_goes_through_the_points_that_are_stated() {
        for (bytes, micros) in STATED_POINTS {
            let off = checkpoint_us(bytes) / micros - 1.0;
            assert!(off.abs() < 0.05, "{bytes} bytes: {:.0} % off", off * 100.0);
        }
    }

    #[test]
    fn overheads_of_table_2_are_those_of_its_times() {
        for row in TABLE_2 {
            let overhead = (row.checked_s / row.original_s - 1.0) * 100.0;
            assert!((overhead - row.overhead).abs() < 0.06, "{}: {overhead}", row.name);
        }
    }
}
