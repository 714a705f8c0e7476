//! Limits on the program's addresses and data (RLIMIT_AS, RLIMIT_DATA). To the kernel what the engine has mapped counts, too: it is told
//! as much more, and the program is told what it has set. What the program makes by vfork or becomes by execve has its limits; the
//! copy that a fork makes has the engine's memory as well, and so the kernel's.

use crate::dispatch::{native, Call};
use crate::regions;
use crate::state::{engine, Engine};
use crate::sys::{err, nr, syscall};
use crate::user;
use outlast_image::layout::{ENGINE_BASE, ENGINE_END};

const SETRLIMIT: u64 = 160;
/// RLIMIT_AS and RLIMIT_DATA, in the order of `KernelState::limits`.
const RESOURCES: [u64; 2] = [9, 2];
const INFINITE: u64 = u64::MAX;
/// What the engine may yet map, for threads above all.
const MORE: u64 = 64 << 20;

/// Soft and hard.
type Limit = [u64; 2];

/// Which of the two limits of this process a call is about.
fn place(e: &Engine, call: &Call) -> Option<usize> {
    let resource = match call.nr {
        SETRLIMIT | nr::GETRLIMIT => call.args[0],
        nr::PRLIMIT64 if call.args[0] == 0 || call.args[0] == e.kernel.pid as u64 => call.args[1],
        _ => return None,
    };
    RESOURCES.iter().position(|&known| known == resource as u32 as u64)
}

/// Does the call only ask for a limit?
pub fn asks(call: &Call) -> bool {
    call.nr == nr::GETRLIMIT || call.nr == nr::PRLIMIT64 && call.args[2] == 0
}

pub fn ask(e: &Engine, call: &Call) -> i64 {
    let to = if call.nr == nr::GETRLIMIT { call.args[1] } else { call.args[3] };
    match place(e, call).filter(|&place| e.kernel.limits[place] != 0 && to != 0) {
        Some(place) if user::write(to, &seen(e, place)) => 0,
        Some(_) => err::EFAULT,
        None => native(call),
    }
}

/// Sets a limit of any kind.
pub fn set(e: &mut Engine, call: &Call) -> i64 {
    let (new, old) = if call.nr == SETRLIMIT { (call.args[1], 0) } else { (call.args[2], call.args[3]) };
    let sets = call.nr == SETRLIMIT || call.nr == nr::PRLIMIT64 && new != 0;
    let Some(place) = place(e, call).filter(|_| sets) else { return native(call) };
    let Some(wanted) = user::read::<Limit>(new) else { return err::EFAULT };
    if wanted[0] > wanted[1] {
        return err::EINVAL;
    }
    let (before, hard) = (seen(e, place), kernels(place)[1]);
    let more = size_of_engine(place) + MORE;
    let mut limit = wanted.map(|bytes| bytes.saturating_add(more));
    if wanted[1] <= before[1] {
        // One that is not raised for the program is not raised for the kernel, which might not allow it.
        limit = limit.map(|bytes| bytes.min(hard));
    }
    let r = tell(place, &limit);
    if r == 0 {
        e.kernel.limits[place] = more;
        e.kernel_dirty = true;
        if old != 0 && !user::write(old, &before) {
            return err::EFAULT;
        }
    }
    r
}

/// What the kernel has.
fn kernels(place: usize) -> Limit {
    let mut limit = [INFINITE; 2];
    // SAFETY: the kernel fills the limit.
    unsafe { syscall!(nr::PRLIMIT64, 0, RESOURCES[place], 0, limit.as_mut_ptr()) };
    limit
}

fn tell(place: usize, limit: &Limit) -> i64 {
    // SAFETY: what the engine needs is part of the limit.
    unsafe { syscall!(nr::PRLIMIT64, 0, RESOURCES[place], limit.as_ptr(), 0) }
}

/// What the program has set.
fn seen(e: &Engine, place: usize) -> Limit {
    let more = e.kernel.limits[place];
    kernels(place).map(|bytes| if bytes == INFINITE { bytes } else { bytes.saturating_sub(more) })
}

/// How many bytes of the engine count: all, or what is private and writable.
fn size_of_engine(place: usize) -> u64 {
    let (mut size, text) = (0, regions::read_maps());
    regions::each_range(text, |start, end, prot| {
        let is_data = prot[1] == b'w' && prot[3] == b'p';
        if (ENGINE_BASE..ENGINE_END).contains(&start) && (place == 0 || is_data) {
            size += end - start;
        }
    });
    size
}

/// Makes a call with which a process begins that is not to have the engine's share, or becomes one that has no engine yet.
pub fn without_share(call: impl FnOnce() -> i64) -> i64 {
    // SAFETY: at the gate; only looks what was set.
    let e = unsafe { engine() };
    let places = || (0..RESOURCES.len()).filter(|&place| e.kernel.limits[place] != 0);
    let kept = core::array::from_fn::<Limit, 2, _>(kernels);
    // A hard limit that is lowered could not be raised again.
    places().for_each(|place| {
        tell(place, &[seen(e, place)[0], kept[place][1]]);
    });
    let r = call();
    places().for_each(|place| {
        tell(place, &kept[place]);
    });
    r
}
