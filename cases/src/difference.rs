//! The first place where two outside views differ.

use std::fmt;

/// Bytes shown on either side of the first difference.
const AROUND: usize = 48;

/// The first difference between what was seen and what an unharmed run shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// A stream or a file's contents.
    Bytes { place: String, offset: usize, expected: Vec<u8>, seen: Vec<u8>, expected_len: usize, seen_len: usize },
    /// Anything else: a status, a screen, the presence of a file.
    Value { place: String, expected: String, seen: String },
}

impl Difference {
    /// The first offset at which `seen` is not `expected`; `None` if they are equal.
    pub fn of_bytes(place: &str, expected: &[u8], seen: &[u8]) -> Option<Difference> {
        if expected == seen {
            return None;
        }
        let offset = expected.iter().zip(seen).take_while(|(a, b)| a == b).count();
        let around = |bytes: &[u8]| {
            bytes[offset.saturating_sub(AROUND).min(bytes.len())..(offset + AROUND).min(bytes.len())].to_vec()
        };
        Some(Difference::Bytes {
            place: place.to_string(),
            offset,
            expected: around(expected),
            seen: around(seen),
            expected_len: expected.len(),
            seen_len: seen.len(),
        })
    }

    /// `None` if the values are equal.
    pub fn of_values<T: PartialEq + fmt::Debug>(place: &str, expected: &T, seen: &T) -> Option<Difference> {
        (expected != seen).then(|| Difference::Value {
            place: place.to_string(),
            expected: format!("{expected:?}"),
            seen: format!("{seen:?}"),
        })
    }

    /// `None` if the texts are equal; otherwise both are kept whole, line by line.
    pub fn of_texts(place: &str, expected: &str, seen: &str) -> Option<Difference> {
        (expected != seen).then(|| Difference::Value {
            place: place.to_string(),
            expected: format!("\n{expected}"),
            seen: format!("\n{seen}"),
        })
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Difference::Bytes { place, offset, expected, seen, expected_len, seen_len } => write!(
                f,
                "{place}: first difference at byte {offset} (expected {expected_len} bytes, saw {seen_len})\n  \
                 expected … {}\n  saw      … {}",
                expected.escape_ascii(),
                seen.escape_ascii()
            ),
            Difference::Value { place, expected, seen } => {
                write!(f, "{place}\n  expected {expected}\n  saw      {seen}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_byte_is_found_at_its_offset() {
        let Some(Difference::Bytes { offset, .. }) = Difference::of_bytes("stdout", b"00010002", b"0001002") else {
            panic!("a lost byte was not noticed");
        };
        assert_eq!(offset, 6);
    }

    #[test]
    fn a_missing_tail_is_a_difference() {
        let Some(Difference::Bytes { offset, seen_len, .. }) = Difference::of_bytes("stdout", b"abc", b"ab") else {
            panic!("a missing tail was not noticed");
        };
        assert_eq!((offset, seen_len), (2, 2));
    }

    #[test]
    fn equal_bytes_do_not_differ() {
        assert_eq!(Difference::of_bytes("stdout", b"abc", b"abc"), None);
    }
}
