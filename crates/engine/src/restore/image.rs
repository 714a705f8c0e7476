//! What the kernel made for another process image is brought to where the program knows it: the vDSO with its data
//! pages, the break, the bounds that /proc shows. Nothing to do where the process descends from the program's own image.

use crate::control::degrade;
use crate::own_descriptors::Passing;
use crate::regions::{self, Mapped, Regions};
use crate::scratch;
use crate::state::{object, Engine};
use crate::sys::{err, nr, syscall};
use outlast_image::degradation::Degradation;
use outlast_image::layout::{ENGINE_END, USER_END};
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

/// Moves the kernel's mappings to their committed places. `object` holds the committed regions.
pub fn move_kernel_mappings(object: &[u8]) {
    let text = regions::read_maps();
    let mut waiting = 0;
    // First away, then to their places: old and new places may overlap.
    for to_place in [false, true] {
        let text = if to_place { regions::read_maps() } else { text };
        Regions::new(object).for_each(|wanted| {
            if wanted.region.backing != backing::KERNEL || wanted.region.end > USER_END {
                return;
            }
            let mut found = None;
            regions::for_each(text, (0, 0), |m| {
                if m.region.backing == backing::KERNEL && m.path == wanted.path && found.is_none() {
                    found = Some(m.region);
                }
            });
            let Some(now) = found else {
                degrade(Degradation::MappingLost);
                return;
            };
            let len = now.end - now.start;
            if now.start == wanted.region.start || len != wanted.region.end - wanted.region.start {
                return;
            }
            let target = if to_place { wanted.region.start } else { WAITING_ROOM + waiting };
            waiting += (len + 0xffff) & !0xffff;
            // SAFETY: the target is free: everything else was unmapped.
            let r = unsafe { syscall!(nr::MREMAP, now.start, len, len, MREMAP_MAYMOVE_FIXED, target) };
            if err::is(r) {
                degrade(Degradation::MappingLost);
            }
        });
        if waiting == 0 {
            return;
        }
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
        let Ok(file) = Passing::open(path.as_ptr().cast(), 0) else { return 0 };
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
