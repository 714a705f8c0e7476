//! /proc, also where the program has given itself a root in which there is none.
//!
//! There the engine has one of its own, mounted nowhere, and a descriptor of it. From its root no way goes up, it shows processes alone,
//! and of these those only that the program could trace, security modules aside: whoever takes hold of the descriptor gets no further than
//! other processes of the same user. It takes the right to mount, which most who may change their root have.

use crate::call_filters;
use crate::descriptors;
use crate::own_descriptors::{occupy, Passing};
use crate::state::{engine, Engine, OwnFd};
use crate::sys::{err, nr, syscall};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use outlast_filter::needs::wish;
use outlast_image::descriptor::descriptor_kind as kind;

const AT_FDCWD: i64 = -100;
const ROOT: &[u8] = b"/proc/";
const O_CLOEXEC: u64 = 0o2000000;
const FSOPEN_CLOEXEC: u64 = 1;
const FSMOUNT_CLOEXEC: u64 = 1;
const FSCONFIG_SET_STRING: u64 = 1;
const FSCONFIG_CMD_CREATE: u64 = 6;
/// MOUNT_ATTR_NOSUID, _NODEV and _NOEXEC.
const ATTRIBUTES: u64 = 2 | 4 | 8;

static IS_OWN: AtomicBool = AtomicBool::new(false);

/// Is the engine's own one in use?
pub fn is_own() -> bool {
    IS_OWN.load(Relaxed)
}

/// The folder from which `path`, which begins with "/proc/", is to be looked up, and by what.
pub fn place(path: *const u8) -> (i64, *const u8) {
    if !is_own() {
        return (AT_FDCWD, path);
    }
    // SAFETY: only looks where the engine's descriptors are; all paths begin so.
    unsafe { (engine().own_fd(OwnFd::Proc) as i64, path.add(ROOT.len())) }
}

/// Opens a file whose name begins with "/proc/".
pub fn open(path: &core::ffi::CStr, flags: u64) -> Result<Passing, i64> {
    open_at(path.as_ptr().cast(), flags)
}

fn open_at(path: *const u8, flags: u64) -> Result<Passing, i64> {
    let (dir, path) = place(path);
    // SAFETY: the path ends with a NUL.
    Passing::of(|| unsafe { syscall!(nr::OPENAT, dir, path, flags | O_CLOEXEC, 0) })
}

/// Opens what is open as `fd` once more.
pub fn open_again(fd: i32, flags: u64) -> Result<Passing, i64> {
    open_at(name(b"/proc/self/fd/", fd).as_ptr(), flags)
}

/// What there is to be said of `fd`, as far as it fits.
pub fn info(fd: i32, buf: &mut [u8]) -> &[u8] {
    let n = match open_at(name(b"/proc/self/fdinfo/", fd).as_ptr(), 0) {
        // SAFETY: reads into the buffer.
        Ok(info) => unsafe { syscall!(nr::READ, info.fd, buf.as_mut_ptr(), buf.len()) },
        Err(e) => e,
    };
    &buf[..n.max(0) as usize]
}

/// What the link of `fd` says, as far as it fits; nothing if there is none.
pub fn link(fd: i32, buf: &mut [u8]) -> &[u8] {
    let name = name(b"/proc/self/fd/", fd);
    let (dir, path) = place(name.as_ptr());
    // SAFETY: the kernel writes at most the buffer's length.
    let n = unsafe { syscall!(nr::READLINKAT, dir, path, buf.as_mut_ptr(), buf.len()) };
    &buf[..n.max(0) as usize]
}

fn name(folder: &[u8], fd: i32) -> [u8; 40] {
    let mut name = [0u8; 40];
    crate::text::join(&mut name, &[folder], Some(u64::from(fd as u32)));
    name
}

/// Can the process find itself in /proc?
pub fn can_be_read() -> bool {
    open(c"/proc/self/maps", 0).is_ok()
}

/// The program is about to give itself another root: makes one of the engine's own, unless there is or nobody may.
pub fn make(e: &Engine) {
    if is_own() || !wish::OWN_PROC.into_iter().all(call_filters::permit) {
        return;
    }
    let [fsopen, fsconfig, fsmount] = wish::OWN_PROC.map(u64::from);
    // SAFETY: the name ends with a NUL.
    let Ok(system) = Passing::of(|| unsafe { syscall!(fsopen, c"proc".as_ptr(), FSOPEN_CLOEXEC) }) else { return };
    let set = |key: &core::ffi::CStr, value: &core::ffi::CStr| {
        // SAFETY: both are strings.
        unsafe { syscall!(fsconfig, system.fd, FSCONFIG_SET_STRING, key.as_ptr(), value.as_ptr(), 0) }
    };
    if set(c"hidepid", c"ptraceable") != 0 || set(c"subset", c"pid") != 0 {
        return;
    }
    // SAFETY: mounts nowhere.
    let is_made = unsafe { syscall!(fsconfig, system.fd, FSCONFIG_CMD_CREATE, 0, 0, 0) } == 0;
    // SAFETY: as above.
    let mounted = Passing::of(|| unsafe { syscall!(fsmount, system.fd, FSMOUNT_CLOEXEC, ATTRIBUTES) });
    if let (true, Ok(mounted)) = (is_made, mounted) {
        // SAFETY: the number is the engine's.
        let r = unsafe { syscall!(nr::DUP3, mounted.fd, e.own_fd(OwnFd::Proc), O_CLOEXEC) };
        IS_OWN.store(!err::is(r), Relaxed);
    }
}

/// Does without it where the program's root has one.
pub fn give_up_if_not_needed(e: &Engine) {
    if !IS_OWN.swap(false, Relaxed) {
        return;
    }
    if !can_be_read() {
        return IS_OWN.store(true, Relaxed);
    }
    e.close_own(OwnFd::Proc);
    occupy(e);
}

/// A new process finds what the one before has left.
pub fn find(e: &Engine) {
    IS_OWN.store(descriptors::classify(e.own_fd(OwnFd::Proc)) == kind::DIRECTORY, Relaxed);
}
