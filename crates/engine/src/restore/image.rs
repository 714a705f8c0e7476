//! What the kernel made for another process image is brought to where the program knows it: the vDSO with its data
//! pages, the break, the bounds that /proc shows. Nothing to do where the process descends from the program's own image.

use super::vdso;
use crate::control::degrade;
use crate::proc;
use crate::regions::{self, Mapped, Regions};
use crate::scratch;
use crate::state::{object, Engine};
use crate::sys::{err, nr, syscall};
use outlast_image::degradation::Degradation;
use outlast_image::layout::{ENGINE_BASE, ENGINE_END, USER_END};
use outlast_image::region::backing;

const MREMAP_MAYMOVE_FIXED: u64 = 1 | 2;
const PR_SET_MM: u64 = 35;
const PR_SET_MM_MAP: u64 = 14;
/// A range that no program and no kernel mapping uses while everything is moved.
const WAITING_ROOM: u64 = ENGINE_END + (1 << 30);

/// `struct prctl_mm_map`.
#[repr(C)]
struct MmMap {
    code: [u64; 2],
    data: [u64; 2],
    brk: [u64; 2],
    stack: u64,
    arg: [u64; 2],
    env: [u64; 2],
    auxv: u64,
    auxv_len: u32,
    exe_fd: u32,
}

/// A mapping of the kernel's: where it is, where it shall be.
#[derive(Clone, Copy, Default)]
struct Moved {
    now: (u64, u64),
    then: u64,
}

/// vDSO and data pages of today's kernels are three mappings, `[vvar]`, `[vvar_vclock]` and `[vdso]`.
const MAPPINGS: usize = 8;

/// Moves the kernel's mappings to where the program knows them. Its code refers to the data before it, so that all move alike.
pub fn move_kernel_mappings(e: &mut Engine) {
    let wanted = e.kernel.vdso[1];
    let (mut moved, mut count, mut code) = ([Moved::default(); MAPPINGS], 0, (0, 0));
    regions::for_each(regions::read_maps(), (0, 0), |m| {
        if m.region.backing == backing::KERNEL && m.region.end <= USER_END && count < MAPPINGS {
            moved[count].now = (m.region.start, m.region.end);
            count += 1;
            if m.path == b"[vdso]" {
                code = moved[count - 1].now;
            }
        }
    });
    let moved = &mut moved[..count];
    if wanted == 0 || code.1 == 0 {
        return;
    }
    let is_the_same = vdso::is_the_same(e, code.0, code.1);
    if !is_the_same {
        // What is there instead needs no data, and other data would lie in the way.
        for data in moved.iter_mut().filter(|mapping| mapping.now != code) {
            // SAFETY: nobody reads it any more.
            unsafe { syscall!(nr::MUNMAP, data.now.0, data.now.1 - data.now.0) };
            data.now = (0, 0);
        }
    }
    for mapping in moved.iter_mut().filter(|mapping| mapping.now.1 != 0) {
        mapping.then = mapping.now.0.wrapping_sub(code.0).wrapping_add(wanted);
    }
    if code.0 != wanted {
        // First away, then to their places: old and new places may overlap.
        let mut room = WAITING_ROOM;
        for mapping in moved.iter_mut().filter(|mapping| mapping.now.1 != 0) {
            let to = room;
            room += (mapping.now.1 - mapping.now.0 + 0xffff) & !0xffff;
            remap(mapping, to);
        }
        for mapping in moved.iter_mut().filter(|mapping| mapping.now.1 != 0) {
            let to = mapping.then;
            remap(mapping, to);
        }
    }
    let place = (wanted, wanted.saturating_add(code.1 - code.0));
    let is_there = moved.iter().any(|mapping| mapping.now == place);
    let stands = is_the_same || is_there && vdso::stand_in(e, place.0, place.1);
    if !stands {
        degrade(Degradation::MappingLost);
    }
}

fn remap(mapping: &mut Moved, to: u64) {
    let len = mapping.now.1 - mapping.now.0;
    // The store is untrusted.
    if to > USER_END - len || to < ENGINE_END && to + len > ENGINE_BASE {
        return degrade(Degradation::MappingLost);
    }
    // SAFETY: the target is free: everything else was unmapped.
    let r = unsafe { syscall!(nr::MREMAP, mapping.now.0, len, len, MREMAP_MAYMOVE_FIXED, to) };
    match err::is(r) {
        true => degrade(Degradation::MappingLost),
        false => mapping.now = (to, to + len),
    }
}

/// Sets break and bounds as committed.
pub fn set_bounds(e: &mut Engine) {
    // SAFETY: brk(0) has no effect; a lower break than the present one belongs to the same image.
    let reached = unsafe { syscall!(nr::BRK, e.kernel.brk) } as u64;
    if reached == e.kernel.brk && e.args.mode == outlast_image::inject::mode::START {
        return;
    }
    let buf = scratch::object_buffer();
    let auxv_len = e.store().object(object::IMAGE, 0, buf).unwrap_or(0).min(4096);
    let m = &e.kernel.mm;
    let map = MmMap {
        code: [m[0], m[1]],
        data: [m[2], m[3]],
        brk: [e.kernel.start_brk, e.kernel.brk],
        stack: m[4],
        arg: [m[5], m[6]],
        env: [m[7], m[8]],
        auxv: buf.as_ptr() as u64,
        auxv_len: auxv_len as u32,
        exe_fd: !0,
    };
    // SAFETY: the kernel reads the structure; it refuses bounds outside mapped or allowed ranges.
    let r = unsafe { syscall!(nr::PRCTL, PR_SET_MM, PR_SET_MM_MAP, &raw const map, core::mem::size_of::<MmMap>()) };
    if err::is(r) {
        crate::control::control().error_number.store(r as i32, core::sync::atomic::Ordering::Relaxed);
        degrade(Degradation::MappingLost);
    }
}

/// Reads the bounds of this image into the kernel state: fields 26 to 51 of /proc/self/stat, and the auxiliary vector.
pub fn read_bounds(e: &mut Engine) -> usize {
    let buf = scratch::maps_text();
    let n = read_file(c"/proc/self/stat", buf);
    // The second field is the command in parentheses and may hold anything.
    let from = buf[..n].iter().rposition(|&b| b == b')').map_or(n, |p| p + 2);
    let field = |k: usize| {
        let text = buf[from..n].split(|&b| b == b' ').nth(k - 3).unwrap_or(b"0");
        text.iter()
            .take_while(|c| c.is_ascii_digit())
            .fold(0u64, |v, c| v.wrapping_mul(10).wrapping_add((c - b'0') as u64))
    };
    for (i, k) in [26, 27, 45, 46, 28, 48, 49, 50, 51].into_iter().enumerate() {
        e.kernel.mm[i] = field(k);
    }
    let start_brk = field(47);
    if start_brk != 0 {
        e.kernel.start_brk = start_brk;
    }
    read_file(c"/proc/self/auxv", scratch::object_buffer())
}

fn read_file(path: &core::ffi::CStr, buf: &mut [u8]) -> usize {
    // SAFETY: reads into the buffer.
    unsafe {
        let Ok(file) = proc::open(path, 0) else { return 0 };
        syscall!(nr::READ, file.fd, buf.as_mut_ptr(), buf.len().min(1 << 20)).max(0) as usize
    }
}

/// End of the committed stack region, 0 if there is none.
pub fn stack_end(object: &[u8]) -> u64 {
    let mut end = 0;
    Regions::new(object).for_each(|m: Mapped<'_>| {
        if m.region.backing == backing::STACK {
            end = m.region.end;
        }
    });
    end
}
