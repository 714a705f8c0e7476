//! Sets of pages of a chunk.

use crate::areas::CHUNK_PAGES;

/// 512 bits, one a page of a chunk.
pub type Bitmap = [u64; 8];

/// Whether bit `n` is set.
#[inline]
pub fn is_set(map: &Bitmap, n: u32) -> bool {
    map[(n / 64 % 8) as usize] >> (n % 64) & 1 != 0
}

/// Sets bit `n`.
#[inline]
pub fn set(map: &mut Bitmap, n: u32) {
    map[(n / 64 % 8) as usize] |= 1 << (n % 64);
}

/// Bits `from..to` of each of the 8 words; `from <= to <= 512`.
pub fn mask(from: u32, to: u32) -> Bitmap {
    let mut map = [0; 8];
    for (n, word) in map.iter_mut().enumerate() {
        let base = n as u32 * 64;
        let low = from.clamp(base, base + 64) - base;
        let high = to.clamp(base, base + 64) - base;
        if low < high {
            *word = (u64::MAX >> (64 - (high - low))) << low;
        }
    }
    map
}

/// Calls `f(first, count)` for every maximal run of set bits.
pub fn each_run(map: &Bitmap, mut f: impl FnMut(u32, u32)) {
    let (mut n, pages) = (0, CHUNK_PAGES as u32);
    while n < pages {
        let word = map[(n / 64) as usize] >> (n % 64);
        if word == 0 {
            n = (n / 64 + 1) * 64;
            continue;
        }
        let first = n + word.trailing_zeros();
        n = first;
        while n < pages {
            let ones = (!(map[(n / 64) as usize] >> (n % 64))).trailing_zeros().min(64 - n % 64);
            n += ones;
            if ones == 0 || n % 64 != 0 {
                break;
            }
        }
        f(first, n - first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_bits_match_a_plain_loop() {
        let maps =
            [[0; 8], [u64::MAX; 8], mask(3, 200), mask(64, 128), mask(511, 512), mask(63, 65), [5; 8], [1 << 63; 8]];
        for map in maps {
            let mut seen = [0; 8];
            let mut end = 0;
            each_run(&map, |first, count| {
                assert!(count > 0 && (end == 0 || first > end), "maximal and ascending");
                end = first + count;
                (first..end).for_each(|n| set(&mut seen, n));
            });
            assert_eq!(seen, map);
        }
    }

    #[test]
    fn mask_sets_exactly_its_range() {
        for (from, to) in [(0, 0), (0, 512), (1, 511), (64, 64), (60, 70), (128, 192)] {
            let map = mask(from, to);
            (0..512).for_each(|n| assert_eq!(is_set(&map, n), (from..to).contains(&n)));
        }
    }
}
