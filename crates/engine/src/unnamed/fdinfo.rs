//! What /proc says of one descriptor.

use crate::own_descriptors::Passing;
use crate::sys::{nr, syscall};
use crate::text;

/// The text, as far as it fits.
pub fn read(fd: i32, buf: &mut [u8]) -> &[u8] {
    let mut name = [0u8; 48];
    text::join(&mut name, &[b"/proc/self/fdinfo/"], Some(fd as u32 as u64));
    let n = match Passing::open(name.as_ptr(), 0) {
        // SAFETY: reads a file of /proc into the buffer.
        Ok(info) => unsafe { syscall!(nr::READ, info.fd, buf.as_mut_ptr(), buf.len()) },
        Err(e) => e,
    };
    &buf[..n.max(0) as usize]
}

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
