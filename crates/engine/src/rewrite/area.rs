//! Stub areas: small executable mappings near the program's code.

use super::Obstacle;
use crate::regions;
use crate::scratch;
use crate::sys::{err, nr, syscall};
use outlast_image::region::region_flag;
use outlast_rewrite::{Plan, AREA_LEN};

const READ_EXECUTE: u64 = 1 | 4;
const MAP_PRIVATE_ANONYMOUS: u64 = 0x02 | 0x20;
const MAP_FIXED_NOREPLACE: u64 = 0x10_0000;
const EPERM: i64 = -1;
/// Room kept free above the break, which would stop growing at an area.
const HEAP_ROOM: u64 = 4 << 30;
/// Room kept free below what grows downwards.
const STACK_ROOM: u64 = 1 << 30;

/// Maps an area that serves `plan`; its address. `heap`: start of the heap and present break.
///
/// It is born readable and executable, never writable: filled by [`super::CodeMemory`].
/// Errors: `Never` where there is no place, `Forbidden` where the system allows no new executable memory.
pub fn map(plan: &Plan, heap: (u64, u64)) -> Result<u64, Obstacle> {
    let taken = taken(heap);
    let base = plan.reach().nearest_gap(plan.at(), taken.iter().copied()).ok_or(Obstacle::Never)?;
    let flags = MAP_PRIVATE_ANONYMOUS | MAP_FIXED_NOREPLACE;
    // SAFETY: takes only what is free.
    match unsafe { syscall!(nr::MMAP, base, AREA_LEN, READ_EXECUTE, flags, -1i64, 0) } {
        r if r as u64 == base => Ok(base),
        err::EACCES | EPERM => Err(Obstacle::Forbidden),
        r if err::is(r) => Err(Obstacle::Never),
        // Kernels before 4.17 take the address for a hint.
        elsewhere => {
            // SAFETY: the mapping was just made.
            unsafe { syscall!(nr::MUNMAP, elsewhere, AREA_LEN) };
            Err(Obstacle::Never)
        }
    }
}

/// What is mapped, and where heap and stack may grow, in ascending order.
fn taken(heap: (u64, u64)) -> &'static [(u64, u64)] {
    let room = scratch::ranges();
    let mut count = 0;
    let mut push = |range| {
        if let Some(to) = room.get_mut(count) {
            *to = range;
            count += 1;
        }
    };
    let mut heap = Some((heap.0, heap.1 + HEAP_ROOM));
    regions::for_each(regions::read_maps(), (0, 0), |m| {
        let r = m.region;
        if heap.is_some_and(|(start, _)| r.start >= start) {
            heap.take().into_iter().for_each(&mut push);
        }
        let down = if r.flags & region_flag::GROWSDOWN != 0 { STACK_ROOM } else { 0 };
        push((r.start - down.min(r.start), r.end));
    });
    &room[..count]
}
