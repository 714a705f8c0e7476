//! pidfds that the program has of itself and of its threads. The kernel knows a process by one as long as it lives: in a recovered
//! one they stand for the dead, and are opened again, under the same numbers.

use super::watched_pidfds;
use crate::control::degrade;
use crate::dispatch::Call;
use crate::mutant::without;
use crate::numbers;
use crate::scratch;
use crate::state::{object, Engine};
use crate::sys::{err, nr, syscall};
use crate::world;
use core::mem::size_of;
use outlast_image::degradation::Degradation;
use outlast_image::descriptor::Descriptor;
use outlast_image::mutant::Mutant;

const O_NONBLOCK: u32 = 0o4000;
/// PIDFD_THREAD, which is O_EXCL.
const THREAD: u32 = 0o200;
const F_SETFD: u64 = 2;
const F_GETFL: u64 = 3;

/// How many processes and threads are kept apart.
const MOST: usize = 64;

/// The inode that stands for a process or thread, and the number by which the program knows that.
#[derive(Clone, Copy)]
struct Known {
    inode: u64,
    number: u32,
}

static mut KNOWN: [Known; MOST] = [Known { inode: 0, number: 0 }; MOST];

/// Those that are known, and free places.
///
/// # Safety
/// The caller has the engine's lock.
unsafe fn known() -> &'static mut [Known; MOST] {
    let this = &raw mut KNOWN;
    &mut *this
}

/// What tells a pidfd of one process from those of others (Linux 6.9; before, all have the same).
fn inode_of(fd: i32) -> Option<u64> {
    const PID_FS_MAGIC: u64 = 0x5049_4446;
    let (mut fs, mut st) = ([0u64; 15], [0u64; 18]);
    // SAFETY: fstatfs writes 120 bytes, fstat 144.
    let told =
        unsafe { syscall!(nr::FSTATFS, fd, fs.as_mut_ptr()) == 0 && syscall!(nr::FSTAT, fd, st.as_mut_ptr()) == 0 };
    (told && fs[0] == PID_FS_MAGIC).then_some(st[1])
}

/// The program has opened one.
pub fn opened(e: &mut Engine, call: &Call, fd: i64) {
    let number = call.args[0] as u32;
    if err::is(fd) || number != e.kernel.pid && world::find(|t| t.tid == number).is_none() {
        return;
    }
    match inode_of(fd as i32) {
        Some(inode) if note(inode, number) => (e.kernel.own_pidfds, e.kernel_dirty) = (1, true),
        _ => degrade(Degradation::KernelObject),
    }
}

fn note(inode: u64, number: u32) -> bool {
    // SAFETY: called by dispatch, or in a restore.
    let known = unsafe { known() };
    let place = known.iter_mut().find(|k| k.inode == inode || k.inode == 0);
    place.map(|place| *place = Known { inode, number }).is_some()
}

/// Of whom of the program's own a descriptor with this inode is the pidfd, for the commit; 0: it is none.
pub fn number_of(fd: i32, inode: u64) -> u32 {
    // SAFETY: called in a commit.
    let known = unsafe { known() };
    let found = known.iter().find(|k| k.inode == inode && inode != 0);
    found.filter(|_| inode_of(fd) == Some(inode)).map_or(0, |k| k.number)
}

/// What the program does by sending a signal through one of these: the same, by number. None: it goes to others, or to a group.
pub fn as_kill(e: &Engine, call: &Call) -> Option<Call> {
    const TO_THREAD: u64 = 1;
    const TO_PROCESS: u64 = 2;
    let [fd, sig, info, flags, ..] = call.args;
    let number = inode_of(fd as i32).map(|inode| number_of(fd as i32, inode)).filter(|&number| number != 0)? as u64;
    // SAFETY: F_GETFL and a signal 0 have no effect.
    let (lives, flags_now) =
        unsafe { (syscall!(nr::PIDFD_SEND_SIGNAL, fd, 0, 0, 0) == 0, syscall!(nr::FCNTL, fd, F_GETFL) as u32) };
    if !lives {
        // Another thread may have the number by now.
        return None;
    }
    let of_thread = flags_now & THREAD != 0;
    let to_thread = match flags {
        0 => of_thread,
        TO_THREAD => true,
        TO_PROCESS => false,
        _ => return None,
    };
    let pid = e.kernel.pid as u64;
    let (nr, args) = match (to_thread, info) {
        (true, 0) => (nr::TGKILL, [pid, number, sig, 0, 0, 0]),
        (true, _) => (nr::RT_TGSIGQUEUEINFO, [pid, number, sig, info, 0, 0]),
        (false, 0) => (nr::KILL, [pid, sig, 0, 0, 0, 0]),
        (false, _) => (nr::RT_SIGQUEUEINFO, [pid, sig, info, 0, 0, 0]),
    };
    Some(Call { nr, args })
}

/// Opens those of the commit for the process that this has become, once its threads are there. `cold`: nothing is left of the dead's.
pub fn restore(e: &mut Engine, cold: bool) {
    if e.kernel.own_pidfds == 0 || without(Mutant::OwnPidfds) {
        return;
    }
    // SAFETY: nobody else uses the engine.
    *unsafe { known() } = [Known { inode: 0, number: 0 }; MOST];
    for fd in 0..e.fds.end() {
        if e.fds.is_open(fd) {
            open_again(e, fd, cold);
        }
    }
}

fn open_again(e: &mut Engine, fd: i32, cold: bool) {
    let Some(d) = described(e, fd).filter(|d| d.own != 0) else { return };
    let real = match world::find(|t| t.tid == d.own) {
        _ if d.own == e.kernel.pid => numbers::own(),
        Some((_, real)) => real as u64,
        // A thread that had ended: what there is tells so.
        None => return,
    };
    // SAFETY: asks about a descriptor, and puts one of this process in its place.
    unsafe {
        let flags = if cold { d.flags } else { syscall!(nr::FCNTL, fd, F_GETFL) as u32 };
        if cold {
            syscall!(nr::FCNTL, fd, F_SETFD, d.fd_flags);
        }
        let new = syscall!(nr::PIDFD_OPEN, real, flags & (O_NONBLOCK | THREAD));
        if err::is(new) {
            return degrade(Degradation::KernelObject);
        }
        if new != fd as i64 {
            watched_pidfds::replace(e, fd, new as i32);
            syscall!(nr::CLOSE, new);
        }
        if let Some(inode) = inode_of(fd) {
            note(inode, d.own);
        }
    }
}

/// Does a descriptor, or what stands for one, mean this process or one of its threads?
pub fn is_of_self(fd: i32) -> bool {
    const SELF_THREAD: i32 = -10_000;
    const SELF_PROCESS: i32 = -10_001;
    matches!(fd, SELF_THREAD | SELF_PROCESS) || inode_of(fd).is_some_and(|inode| number_of(fd, inode) != 0)
}

/// Does the commit know the descriptor as a pidfd of the program's own?
pub fn is_own(d: &Descriptor) -> bool {
    d.own != 0
}

fn described(e: &mut Engine, fd: i32) -> Option<Descriptor> {
    let buf = scratch::object_buffer();
    let n = e.store().object(object::DESCRIPTOR, fd as u64, buf)?;
    (n >= size_of::<Descriptor>()).then(|| bytemuck::pod_read_unaligned(&buf[..size_of::<Descriptor>()]))
}
