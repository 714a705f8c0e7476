//! The code that the kernel puts into every process (vDSO), for a program that knows the one of another kernel.
//!
//! A program keeps addresses of its functions. After a boot of another kernel they lie elsewhere, and their code reads data
//! pages of another form. The program then gets a stand-in at the old addresses: the old image, in which each function makes
//! the system call that it is there to spare. It is written into the kernel's own mapping, which is private, so that all else goes on
//! as with the kernel's.

use crate::control;
use crate::regions;
use crate::scratch;
use crate::state::{object, Engine};
use crate::sys::{err, nr, syscall};
use crate::user;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use outlast_image::control::unreadable;

/// Bytes of an image that are kept at most: the kernel's have one to four pages.
pub const MOST: usize = 64 << 10;
const READ_WRITE: u64 = 3;
const READ_EXECUTE: u64 = 5;

/// A function and the call that it spares.
const FUNCTIONS: [(&[u8], u32); 7] = [
    (b"clock_gettime", 228),
    (b"gettimeofday", 96),
    (b"time", 201),
    (b"clock_getres", 229),
    (b"getcpu", 309),
    (b"getrandom", 318),
    // No number is so large: ENOSYS.
    (b"sgx_enter_enclave", 0x7fff_ffff),
];

/// 1: the program has the stand-in.
static REPLACED: AtomicU32 = AtomicU32::new(0);

/// Is `rip` in the program's vDSO?
pub fn is_inside(e: &Engine, rip: u64) -> bool {
    (e.kernel.vdso[1]..e.kernel.vdso[2]).contains(&rip)
}

/// A thread that was in the middle of a function that is no more cannot go on.
pub fn refuse_inside(e: &Engine, rip: u64) {
    if REPLACED.load(Relaxed) != 0 && is_inside(e, rip) {
        control::unreadable(unreadable::KERNEL);
    }
}

/// Notes where the vDSO and its data lie, and puts the image into the commit that is being built.
pub fn describe(e: &mut Engine) {
    let mut place = [u64::MAX, 0, 0];
    regions::for_each(regions::read_maps(), (0, 0), |m| match m.path {
        b"[vdso]" => (place[1], place[2]) = (m.region.start, m.region.end),
        path if path.starts_with(b"[vvar") => place[0] = place[0].min(m.region.start),
        _ => {}
    });
    let len = place[2] - place[1];
    if place[1] == 0 || len as usize > MOST {
        return;
    }
    (e.kernel.vdso, e.kernel_dirty) = (place, true);
    let image = &mut scratch::object_buffer()[..len as usize];
    if user::read_bytes(place[1], image) {
        e.store().put(object::VDSO, 0, image);
    }
}

/// Is what lies at `start..end` what the program had there?
pub fn is_the_same(e: &mut Engine, start: u64, end: u64) -> bool {
    let Some(len) = stored(e) else { return true };
    let (mut piece, image) = ([0u8; 512], &scratch::object_buffer()[..len]);
    len as u64 == end - start
        && (start..end).step_by(512).zip(image.chunks(512)).all(|(at, known)| {
            let piece = &mut piece[..known.len()];
            user::read_bytes(at, piece) && piece == known
        })
}

/// Writes the stand-in over the kernel's vDSO, which lies where the program's did, in `start..end`. False: that is not possible.
pub fn stand_in(e: &mut Engine, start: u64, end: u64) -> bool {
    let Some(len) = stored(e).filter(|&len| len as u64 <= end - start) else { return false };
    let image = &mut scratch::object_buffer()[..len];
    if !patch(image) {
        return false;
    }
    // SAFETY: the kernel's mapping is private and nobody runs there.
    unsafe {
        if err::is(syscall!(nr::MPROTECT, start, end - start, READ_WRITE)) {
            return false;
        }
        let written = user::write_bytes(start, image);
        REPLACED.store(1, Relaxed);
        !err::is(syscall!(nr::MPROTECT, start, end - start, READ_EXECUTE)) && written
    }
}

/// Reads the program's image into the object buffer: its length.
fn stored(e: &mut Engine) -> Option<usize> {
    e.store().object(object::VDSO, 0, scratch::object_buffer()).filter(|&len| len <= MOST && len % 4096 == 0 && len > 0)
}

/// Has every function of the image make its call. False: it is not an image. Nothing in it is trusted.
fn patch(image: &mut [u8]) -> bool {
    const DYNSYM: u32 = 11;
    const SYMBOL: u64 = 24;
    let section = |image: &[u8], n: u64| -> Option<[u64; 4]> {
        let (table, size) = (word(image, 40)?, half(image, 58)? as u64);
        let at = table.checked_add(n.checked_mul(size)?)?;
        let kind_and_link = [(word(image, at + 4)? as u32) as u64, (word(image, at + 40)? as u32) as u64];
        Some([kind_and_link[0], kind_and_link[1], word(image, at + 24)?, word(image, at + 32)?])
    };
    let Some(count) = half(image, 60) else { return false };
    let symbols = (0..count as u64).filter_map(|n| section(image, n)).find(|section| section[0] == DYNSYM as u64);
    let Some([_, link, table, len]) = symbols else { return false };
    let Some([_, _, names, _]) = section(image, link) else { return false };
    let mut patched = 0;
    for n in 0..(len / SYMBOL).min(256) {
        let at = table.saturating_add(n * SYMBOL);
        let (Some(name), Some(value)) = (word(image, at).map(|word| word as u32), word(image, at.saturating_add(8)))
        else {
            return false;
        };
        let from = names.saturating_add(name as u64) as usize;
        let name = image.get(from..).and_then(|rest| rest.split(|&b| b == 0).next()).unwrap_or(b"");
        let name = name.strip_prefix(b"__vdso_").unwrap_or(name);
        let Some(number) = FUNCTIONS.iter().find(|function| function.0 == name).map(|function| function.1) else {
            continue;
        };
        // mov $number, %eax; syscall; ret
        let n = number.to_le_bytes();
        let code = [0xb8, n[0], n[1], n[2], n[3], 0x0f, 0x05, 0xc3];
        let Some(place) = image.get_mut(value as usize..).and_then(|rest| rest.get_mut(..code.len())) else {
            return false;
        };
        place.copy_from_slice(&code);
        patched += 1;
    }
    patched > 0
}

fn word(image: &[u8], at: u64) -> Option<u64> {
    let bytes = image.get(usize::try_from(at).ok()?..)?.get(..8)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

fn half(image: &[u8], at: u64) -> Option<u16> {
    let bytes = image.get(usize::try_from(at).ok()?..)?.get(..2)?;
    Some(u16::from_le_bytes(bytes.try_into().ok()?))
}
