//! What fits a machine word of a call, and is checked when it comes back out of one.

pub trait Word: Copy {
    fn into_word(self) -> u64;
    /// None where no value of the type looks like that: the other side sent nonsense.
    fn from_word(word: u64) -> Option<Self>;
}

macro_rules! words {
    ($($integer:ty),*) => {
        $(impl Word for $integer {
            fn into_word(self) -> u64 {
                self as i64 as u64
            }

            fn from_word(word: u64) -> Option<Self> {
                let value = word as Self;
                (value.into_word() == word).then_some(value)
            }
        })*
    };
}

words!(i8, u8, i16, u16, i32, u32, i64, u64);

#[cfg(test)]
mod tests {
    use super::Word;

    #[test]
    fn a_word_that_does_not_fit_is_refused() {
        assert_eq!(i32::from_word((-1i32).into_word()), Some(-1));
        assert_eq!(u16::from_word(65_535), Some(65_535));
        assert_eq!(u16::from_word(65_536), None);
        assert_eq!(i32::from_word(u64::from(u32::MAX)), None);
        assert_eq!(u64::from_word(u64::MAX), Some(u64::MAX));
    }
}
