//! Folders as the program knows them: /proc/self/fd without the engine's descriptors, any without the names that it hides.

use crate::descriptors::number_of;
use crate::proc;
use crate::state::Engine;
use crate::sys::{nr, syscall};
use crate::undo::hidden;
use crate::user;

/// Where the name begins in an entry of getdents and of getdents64; its length stands at 16 in both.
const LEN: u64 = 16;
const NAME_32: u64 = 18;
const NAME_64: u64 = 19;

/// Takes the engine's descriptors and names out of the `len` bytes of entries at `at` that `number`, getdents or getdents64, has read
/// from `dir`. How many bytes are left; 0: there was nothing but these.
pub fn filter(e: &Engine, number: u64, dir: i32, at: u64, len: u64) -> u64 {
    let name = if number == nr::GETDENTS64 { NAME_64 } else { NAME_32 };
    let is_own = |entry: u64| descriptor_at(entry + name).is_some_and(|fd| e.fds.is_own(fd));
    let (mut from, mut to, end) = (at, at, at + len);
    let mut is_folder = None;
    while let Some(size @ 1..) = user::read::<u16>(from + LEN).map(u64::from).filter(|size| from + size <= end) {
        let hide = hidden::is_at(from + name)
            || is_own(from) && *is_folder.get_or_insert_with(|| is_descriptor_folder(e, dir));
        if !hide {
            if to != from {
                copy(from, to, size);
            }
            to += size;
        }
        from += size;
    }
    to - at
}

/// The descriptor named at `at`, if that is the name of one.
fn descriptor_at(at: u64) -> Option<i32> {
    // Longer than that of any descriptor.
    let mut name = [0u8; 12];
    for i in 0..name.len() {
        match user::read::<u8>(at + i as u64)? {
            0 => return number_of(&name[..i]),
            byte => name[i] = byte,
        }
    }
    None
}

/// Moves an entry forward.
fn copy(from: u64, to: u64, size: u64) {
    let mut entry = [0u8; 512];
    let entry = &mut entry[..(size as usize).min(512)];
    if user::read_bytes(from, entry) {
        user::write_bytes(to, entry);
    }
}

/// Is it /proc/self/fd, or fdinfo, by whatever name?
fn is_descriptor_folder(e: &Engine, dir: i32) -> bool {
    let mut target = [0u8; 64];
    // SAFETY: getpid has no effect.
    let pid = unsafe { syscall!(nr::GETPID) as u32 };
    let Some(rest) = proc::link(dir, &mut target).strip_prefix(b"/proc/") else { return false };
    let mut parts = rest.split(|&b| b == b'/');
    let ours = parts.next().and_then(number_of).is_some_and(|n| n as u32 == pid || n as u32 == e.kernel.pid);
    ours && matches!(parts.next_back(), Some(b"fd" | b"fdinfo"))
}
