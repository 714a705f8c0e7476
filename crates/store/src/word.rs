//! Words of 8 bytes that are stored at once: a value below 2^48 with 16 bits that show damage.

const VALUE: u64 = (1 << 48) - 1;

/// The word for a value; what does not fit is cut off.
#[inline]
pub fn seal(value: u64) -> u64 {
    let value = value & VALUE;
    // Adding 1 keeps zeroed memory from being a valid word.
    value | (value + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) & !VALUE
}

/// The value of a word, if it is one.
#[inline]
pub fn unseal(word: u64) -> Option<u64> {
    let value = word & VALUE;
    (seal(value) == word).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_shows() {
        for value in [0, 1, 2, 1000, VALUE] {
            assert_eq!(unseal(seal(value)), Some(value));
            (0..64).for_each(|bit| assert_eq!(unseal(seal(value) ^ 1 << bit), None));
        }
        assert_eq!(unseal(0), None);
    }
}
