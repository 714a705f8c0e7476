//! Whom the kernel sends a signal when something can be read or written (F_SETOWN, FIOSETOWN, O_ASYNC). It keeps that with the open
//! file, but as a process or group: a recovered one is made the owner anew, and told of what can be read or written then, since nobody
//! was while nobody lived. So is its group, which may have died with it.

use crate::dispatch::{native, Call};
use crate::inputs::readiness;
use crate::mutant::without;
use crate::numbers;
use crate::queued;
use crate::scratch;
use crate::state::{object, Engine};
use crate::sys::{err, nr, syscall};
use crate::user;
use crate::world;
use core::mem::size_of;
use outlast_image::descriptor::{descriptor_kind, owner_kind, Descriptor};
use outlast_image::mutant::Mutant;

const F_GETFL: u64 = 3;
const F_SETOWN: u64 = 8;
const F_GETOWN: u64 = 9;
const F_GETSIG: u64 = 11;
const F_SETOWN_EX: u64 = 15;
const F_GETOWN_EX: u64 = 16;
const O_ASYNC: i64 = 0o20000;

/// The same by ioctl, which sockets alone know.
const FIOSETOWN: u64 = 0x8901;
const SIOCSPGRP: u64 = 0x8902;
const FIOGETOWN: u64 = 0x8903;
const SIOCGPGRP: u64 = 0x8904;

/// Types of owner, in `struct f_owner_ex`.
const OF_THREAD: i32 = 0;
const OF_PROCESS: i32 = 1;
const OF_GROUP: i32 = 2;

const SIGIO: i32 = 29;
const SI_KERNEL: u64 = 0x80;
const POLL_IN: u64 = 1;
const POLL_OUT: u64 = 2;
const POLLIN: u16 = 1;
const POLLOUT: u16 = 4;

/// `struct f_owner_ex`: type and number.
type Owner = [i32; 2];

/// Does the call ask for the owner of a file, or set it?
pub fn is_one(e: &mut Engine, call: &Call) -> bool {
    match (call.nr, call.args[1] & 0xffff_ffff) {
        (nr::IOCTL, FIOSETOWN | SIOCSPGRP | FIOGETOWN | SIOCGPGRP) => e.fds.kind(call.fd()) == descriptor_kind::SOCKET,
        (nr::IOCTL, _) => false,
        (_, command) => matches!(command, F_SETOWN | F_GETOWN | F_SETOWN_EX | F_GETOWN_EX),
    }
}

/// Private, and the same when it is done again: no commit of its own.
pub fn serve(e: &mut Engine, call: &Call) -> i64 {
    let [_, command, arg, ..] = call.args;
    match command & 0xffff_ffff {
        FIOGETOWN | SIOCGPGRP if call.nr == nr::IOCTL => {
            let r = native(call);
            if let Some(number) = user::read::<i32>(arg).filter(|_| r == 0) {
                user::write(arg, &either_known(number));
            }
            r
        }
        FIOSETOWN | SIOCSPGRP if call.nr == nr::IOCTL => match user::read::<i32>(arg) {
            Some(number) => make(e, call, by_sign(number)),
            None => native(call),
        },
        F_GETOWN => match native(call) {
            // An error, or the number of a group, which the kernel tells from one.
            number if err::is(number) => number,
            number => either_known(number as i32) as i64,
        },
        F_GETOWN_EX => {
            let r = native(call);
            if let Some([kind, number]) = user::read::<Owner>(arg).filter(|_| r == 0) {
                user::write(arg, &[kind, known(e, kind, number)]);
            }
            r
        }
        F_SETOWN => make(e, call, by_sign(arg as i32)),
        _ => make(e, call, user::read::<Owner>(arg)),
    }
}

/// Of a process, or, as a negative number, of a group. `None`: neither.
fn by_sign(number: i32) -> Option<Owner> {
    match number {
        0.. => Some([OF_PROCESS, number]),
        _ => number.checked_neg().map(|group| [OF_GROUP, group]),
    }
}

/// Such a number as the program knows it.
fn either_known(number: i32) -> i32 {
    match number {
        ..0 => -(numbers::to_program(-(number as i64)) as i32),
        _ => numbers::to_program(number as i64) as i32,
    }
}

fn make(e: &mut Engine, call: &Call, wanted: Option<Owner>) -> i64 {
    let Some([kind, number]) = wanted else { return native(call) };
    let r = set(call.fd(), [kind, if number > 0 { numbers::to_kernel(number as u64) as i32 } else { number }]);
    if r == 0 {
        (e.kernel.owners, e.kernel_dirty) = (1, true);
        e.fds.marked(call.fd());
    }
    r
}

fn set(fd: i32, owner: Owner) -> i64 {
    // SAFETY: the kernel reads the owner.
    unsafe { syscall!(nr::FCNTL, fd, F_SETOWN_EX, owner.as_ptr()) }
}

/// The owner's number as the program knows it.
fn known(e: &Engine, kind: i32, number: i32) -> i32 {
    match kind {
        OF_PROCESS | OF_GROUP => numbers::to_program(number as i64) as i32,
        OF_THREAD if number as u64 == numbers::own() => e.kernel.pid as i32,
        OF_THREAD => of_thread(number).unwrap_or(number),
        _ => number,
    }
}

/// What the program calls the thread that the kernel calls `number`.
fn of_thread(number: i32) -> Option<i32> {
    let (place, _) = world::find(|t| t.real_tid == number as u32)?;
    // SAFETY: the thread is there as long as the lock is held.
    Some(unsafe { crate::thread::at(place) }.tid as i32)
}

/// For the commit: who of the program owns the file, one of [`owner_kind`] and the number.
pub fn of(e: &Engine, fd: i32) -> (u32, u32) {
    let mut owner: Owner = [0; 2];
    // SAFETY: the kernel writes the owner.
    let told = unsafe { syscall!(nr::FCNTL, fd, F_GETOWN_EX, owner.as_mut_ptr()) } == 0;
    let [kind, number] = owner;
    match kind {
        _ if !told || number <= 0 => (owner_kind::OTHER, 0),
        OF_PROCESS if number as u64 == numbers::own() => (owner_kind::PROCESS, e.kernel.pid),
        OF_THREAD if number as u64 == numbers::own() => (owner_kind::THREAD, e.kernel.pid),
        OF_THREAD => of_thread(number).map_or((owner_kind::OTHER, 0), |tid| (owner_kind::THREAD, tid as u32)),
        OF_GROUP if number == own_group() => (owner_kind::GROUP, e.kernel.pgid),
        _ => (owner_kind::OTHER, 0),
    }
}

fn own_group() -> i32 {
    // SAFETY: no effect.
    unsafe { syscall!(nr::GETPGID, 0) as i32 }
}

/// Makes this process the owner of what the dead one owned, and sends it what that may have missed. All signals are blocked.
pub fn restore(e: &mut Engine) {
    if e.kernel.owners == 0 || without(Mutant::Owners) {
        return;
    }
    for fd in 0..e.fds.end() {
        let Some(d) = described(e, fd) else { continue };
        let owner = match d.owner_kind {
            owner_kind::PROCESS => [OF_PROCESS, numbers::own() as i32],
            owner_kind::THREAD if d.owner == e.kernel.pid => [OF_THREAD, numbers::own() as i32],
            owner_kind::THREAD => match world::find(|t| t.tid == d.owner) {
                Some((_, real)) => [OF_THREAD, real as i32],
                None => continue,
            },
            owner_kind::GROUP => [OF_GROUP, own_group()],
            _ => continue,
        };
        if set(fd, owner) == 0 {
            tell(e, fd, owner);
        }
    }
}

fn described(e: &mut Engine, fd: i32) -> Option<Descriptor> {
    if !e.fds.is_open(fd) {
        return None;
    }
    let buf = scratch::object_buffer();
    let n = e.store().object(object::DESCRIPTOR, fd as u64, buf)?;
    (n >= size_of::<Descriptor>()).then(|| bytemuck::pod_read_unaligned(&buf[..size_of::<Descriptor>()]))
}

/// Sends the owner the signal of the descriptor if something can be read or written there.
fn tell(e: &mut Engine, fd: i32, owner: Owner) {
    let mut asked = fd as u32 as u64 | ((POLLIN | POLLOUT) as u64) << 32;
    // SAFETY: asks about a descriptor, without waiting.
    let (flags, signal) = unsafe {
        syscall!(nr::POLL, &raw mut asked, 1, 0);
        (syscall!(nr::FCNTL, fd, F_GETFL), syscall!(nr::FCNTL, fd, F_GETSIG))
    };
    let mut ready = (asked >> 48) as u16;
    if readiness::is_ready(e, fd) {
        ready |= POLLIN;
    }
    if flags < 0 || flags & O_ASYNC == 0 || ready == 0 {
        return;
    }
    let mut info: queued::Info = [0; 16];
    match signal as i32 {
        // Without a signal of its own nothing is told but that there is something.
        0 => (info[0], info[1]) = (SIGIO as u64, SI_KERNEL),
        signal => {
            (info[0], info[1]) = (signal as u64, if ready & !POLLOUT != 0 { POLL_IN } else { POLL_OUT });
            (info[2], info[3]) = (ready as u64, fd as u64);
        }
    }
    // SAFETY: a signal to this process; the information lies in memory for the length of the call.
    unsafe {
        if owner[0] == OF_THREAD {
            syscall!(nr::RT_TGSIGQUEUEINFO, numbers::own(), owner[1], queued::signal_of(&info), info.as_ptr());
        } else {
            syscall!(nr::RT_SIGQUEUEINFO, numbers::own(), queued::signal_of(&info), info.as_ptr());
        }
    }
}
