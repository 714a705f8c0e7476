//! What the kernel tells of each mapping by two letters, in /proc/self/smaps.

use crate::proc;
use crate::sys::{nr, syscall};
use outlast_image::layout::{ENGINE_BASE, ENGINE_END};

/// Calls `f` with every mapping that is not the engine's, in ascending order, and its marks.
pub fn each(f: &mut dyn FnMut(u64, u64, &[u8])) {
    let Ok(file) = proc::open(c"/proc/self/smaps", 0) else { return };
    let (mut text, mut kept, mut range) = ([0u8; 8192], 0, (0, 0));
    loop {
        // SAFETY: reads into what is free of the buffer.
        let n = unsafe { syscall!(nr::READ, file.fd, text.as_mut_ptr().add(kept), text.len() - kept) };
        if n <= 0 {
            return;
        }
        let filled = kept + n as usize;
        let mut at = 0;
        while let Some(len) = text[at..filled].iter().position(|&b| b == b'\n') {
            line(&text[at..at + len], &mut range, f);
            at += len + 1;
        }
        // A line that does not fit ends with a path: its beginning was looked at.
        if at == 0 && filled == text.len() {
            line(&text, &mut range, f);
            at = filled;
        }
        text.copy_within(at..filled, 0);
        kept = filled - at;
    }
}

/// Is a mapping marked so?
pub fn has(marks: &[u8], wanted: &[u8]) -> bool {
    marks.split(|&b| b == b' ').any(|mark| mark == wanted)
}

/// A line is the head of a mapping, or tells of the one before.
fn line(line: &[u8], range: &mut (u64, u64), f: &mut dyn FnMut(u64, u64, &[u8])) {
    let Some(marks) = line.strip_prefix(b"VmFlags:") else {
        if let Some(addresses) = addresses(line) {
            *range = addresses;
        }
        return;
    };
    if !(ENGINE_BASE..ENGINE_END).contains(&range.0) {
        f(range.0, range.1, marks);
    }
}

/// `START-END` at the beginning of a line, in hexadecimal digits.
fn addresses(line: &[u8]) -> Option<(u64, u64)> {
    let dash = line.iter().take(17).position(|&b| b == b'-')?;
    let end = dash + 1 + line[dash + 1..].iter().position(|&b| b == b' ')?;
    let number = |digits: &[u8]| {
        let is_hex = |b: &u8| b.is_ascii_digit() || (b'a'..=b'f').contains(b);
        let digit = |b: &u8| (*b as char).to_digit(16).unwrap_or(0) as u64;
        (!digits.is_empty() && digits.iter().all(is_hex)).then(|| digits.iter().fold(0, |n, b| n << 4 | digit(b)))
    };
    Some((number(&line[..dash])?, number(&line[dash + 1..end])?))
}
