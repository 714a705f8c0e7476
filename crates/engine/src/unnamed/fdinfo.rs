//! What /proc says of one descriptor.

/// The numbers in the line that begins with `name`, in this radix, as many as there are wanted; 0 for those that are not there.
pub fn numbers<const N: usize>(text: &[u8], name: &[u8], radix: u32) -> [u64; N] {
    let mut found = [0; N];
    let line = text.split(|&c| c == b'\n').find_map(|line| line.strip_prefix(name));
    let words = line.unwrap_or(&[]).split(|&c| !(c as char).is_digit(radix)).filter(|word| !word.is_empty());
    for (place, word) in found.iter_mut().zip(words) {
        let digits = word.iter().filter_map(|&c| (c as char).to_digit(radix));
        *place = digits.fold(0u64, |n, digit| n.wrapping_mul(radix.into()).wrapping_add(digit.into()));
    }
    found
}
