//! CRC-32C (Castagnoli): by the SSE4.2 instruction where the processor has it, by table otherwise.
//!
//! The instruction has a latency of three cycles and a throughput of one, so long inputs run as three
//! interleaved streams that are joined by a precomputed "append n zero bytes" operator.

use crate::cpu::Cpu;

/// The reflected polynomial.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// Bytes of one of three streams in the long and in the short interleaved loop.
const LONG: usize = 1024;
const SHORT: usize = 128;

static BYTE: [u32; 256] = byte_table();
static AFTER_LONG: [[u32; 256]; 4] = shift_table(LONG);
static AFTER_SHORT: [[u32; 256]; 4] = shift_table(SHORT);

const fn byte_table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut n = 0;
    while n < 256 {
        let mut crc = n as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 != 0 { (crc >> 1) ^ POLYNOMIAL } else { crc >> 1 };
            bit += 1;
        }
        table[n] = crc;
        n += 1;
    }
    table
}

const fn times(matrix: &[u32; 32], mut vector: u32) -> u32 {
    let mut sum = 0;
    let mut row = 0;
    while vector != 0 {
        if vector & 1 != 0 {
            sum ^= matrix[row];
        }
        vector >>= 1;
        row += 1;
    }
    sum
}

/// Tables, one a byte of the register, that advance it over `len` zero bytes; `len` is a power of two.
const fn shift_table(len: usize) -> [[u32; 256]; 4] {
    let mut operator = [0u32; 32];
    operator[0] = POLYNOMIAL;
    let mut row = 1;
    while row < 32 {
        operator[row] = 1 << (row - 1);
        row += 1;
    }
    let mut bits = 1;
    while bits < len * 8 {
        let mut squared = [0; 32];
        let mut row = 0;
        while row < 32 {
            squared[row] = times(&operator, operator[row]);
            row += 1;
        }
        operator = squared;
        bits *= 2;
    }
    let mut table = [[0; 256]; 4];
    let mut byte = 0;
    while byte < 4 {
        let mut n = 0;
        while n < 256 {
            table[byte][n] = times(&operator, (n as u32) << (8 * byte));
            n += 1;
        }
        byte += 1;
    }
    table
}

/// Continues `crc` (0 at the start) over `bytes`.
#[inline]
pub fn crc32c(cpu: Cpu, crc: u32, bytes: &[u8]) -> u32 {
    #[cfg(fuzzing)]
    {
        // A fuzzer must get past the checksums, to what they protect.
        let _ = (cpu, crc, bytes);
        return 0;
    }
    #[cfg(test)]
    if crate::tests::mutant::current().blank_crc {
        return 0;
    }
    #[cfg(not(fuzzing))]
    by_best_means(cpu, crc, bytes)
}

#[inline]
#[cfg_attr(fuzzing, allow(dead_code))]
fn by_best_means(cpu: Cpu, crc: u32, bytes: &[u8]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if cpu.sse42 {
        // SAFETY: the processor has SSE4.2.
        return unsafe { by_instruction(crc, bytes) };
    }
    let _ = cpu;
    by_table(crc, bytes)
}

fn by_table(crc: u32, bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!crc, |crc, byte| (crc >> 8) ^ BYTE[((crc ^ *byte as u32) & 0xff) as usize])
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn shifted(table: &[[u32; 256]; 4], crc: u64) -> u64 {
    let [a, b, c, d] = (crc as u32).to_le_bytes();
    (table[0][a as usize] ^ table[1][b as usize] ^ table[2][c as usize] ^ table[3][d as usize]) as u64
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse4.2")]
fn by_instruction(crc: u32, bytes: &[u8]) -> u32 {
    use core::arch::x86_64::{_mm_crc32_u64, _mm_crc32_u8};
    let mut crc = !crc as u64;
    let mut rest = bytes;
    for (stream, table) in [(LONG, &AFTER_LONG), (SHORT, &AFTER_SHORT)] {
        while rest.len() >= 3 * stream {
            let (now, later) = rest.split_at(3 * stream);
            let (first, other) = now.split_at(stream);
            let (second, third) = other.split_at(stream);
            let (mut crc1, mut crc2) = (0, 0);
            let words = first.chunks_exact(8).zip(second.chunks_exact(8)).zip(third.chunks_exact(8));
            for ((a, b), c) in words {
                crc = _mm_crc32_u64(crc, word(a));
                crc1 = _mm_crc32_u64(crc1, word(b));
                crc2 = _mm_crc32_u64(crc2, word(c));
            }
            crc = shifted(table, crc) ^ crc1;
            crc = shifted(table, crc) ^ crc2;
            rest = later;
        }
    }
    let words = rest.chunks_exact(8);
    let tail = words.remainder();
    for w in words {
        crc = _mm_crc32_u64(crc, word(w));
    }
    let mut crc = crc as u32;
    for byte in tail {
        crc = _mm_crc32_u8(crc, *byte);
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values_of_rfc_3720() {
        for cpu in [Cpu::detect(), Cpu::PLAIN] {
            assert_eq!(crc32c(cpu, 0, b"123456789"), 0xe306_9283);
            assert_eq!(crc32c(cpu, 0, &[0; 32]), 0x8a91_36aa);
            assert_eq!(crc32c(cpu, 0, &[0xff; 32]), 0x62a8_ab43);
        }
    }

    #[test]
    fn instruction_and_table_agree_at_every_length_and_split() {
        let bytes: std::vec::Vec<u8> = (0..9000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        for len in (0..700).chain([3071, 3072, 3073, 4096, 6144, 8191, 9000]) {
            let whole = by_table(7, &bytes[..len]);
            assert_eq!(crc32c(Cpu::detect(), 7, &bytes[..len]), whole, "{len}");
            let (a, b) = bytes[..len].split_at(len / 3);
            assert_eq!(crc32c(Cpu::detect(), crc32c(Cpu::detect(), 7, a), b), whole, "{len} in two parts");
        }
    }
}
