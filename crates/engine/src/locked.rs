//! What of the program's memory is locked: by the kernel's word, as of a commit, and locked again in a restored process.

use crate::control::degrade;
use crate::own_descriptors::Passing;
use crate::regions::Regions;
use crate::sys::{err, nr, syscall};
use core::mem::{offset_of, size_of};
use outlast_image::degradation::Degradation;
use outlast_image::region::{region_flag, Region};

const MLOCK2: u64 = 325;
const MLOCK_ONFAULT: u64 = 1;

pub fn lock(start: u64, end: u64, on_fault: bool) -> i64 {
    // SAFETY: the content of the program's memory stays.
    unsafe { syscall!(MLOCK2, start, end - start, if on_fault { MLOCK_ONFAULT } else { 0 }) }
}

/// Marks the regions of an encoded object that are locked.
pub fn mark(object: &mut [u8]) {
    let mut at = 0;
    each(&mut |start, end, flags| {
        while let Some(head) = object.get(at..at + size_of::<Region>()) {
            let region: Region = bytemuck::pod_read_unaligned(head);
            if region.start >= end {
                break;
            }
            if region.start >= start {
                let place = at + offset_of!(Region, flags);
                object[place..place + 4].copy_from_slice(&(region.flags | flags).to_ne_bytes());
            }
            at += size_of::<Region>() + region.path_len as usize;
        }
    });
}

/// Calls `f` with every locked mapping, in ascending order.
fn each(f: &mut dyn FnMut(u64, u64, u32)) {
    let Ok(file) = Passing::open(c"/proc/self/smaps".as_ptr().cast(), 0) else { return };
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

/// A line is the head of a mapping, or tells of the one before.
fn line(line: &[u8], range: &mut (u64, u64), f: &mut dyn FnMut(u64, u64, u32)) {
    let Some(marks) = line.strip_prefix(b"VmFlags:") else {
        if let Some(addresses) = addresses(line) {
            *range = addresses;
        }
        return;
    };
    let has = |wanted: &[u8]| marks.split(|&b| b == b' ').any(|mark| mark == wanted);
    if has(b"lo") {
        // Kernels that have no name for locking on fault show what they have no name for so.
        let on_fault = if has(b"lf") || has(b"??") { region_flag::ON_FAULT } else { 0 };
        f(range.0, range.1, region_flag::LOCKED | on_fault);
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

/// Locks what was locked at the commit.
pub fn restore(object: &[u8]) {
    for region in Regions::new(object).map(|m| m.region).filter(|r| r.flags & region_flag::LOCKED != 0) {
        let r = lock(region.start, region.end, region.flags & region_flag::ON_FAULT != 0);
        // What the program may not touch cannot be filled, but is locked.
        if err::is(r) && region.prot != 0 {
            degrade(Degradation::MemoryLock);
        }
    }
}
