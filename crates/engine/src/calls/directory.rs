//! The working directory and the mask of new files' modes. The anchor shares both (CLONE_FS), so that they outlive the
//! process as the last call left them; what the program knows of them is what the commit says.

use crate::control::degrade;
use crate::dispatch::{interruptible, redo, Call};
use crate::noted;
use crate::scratch;
use crate::state::{object, Engine};
use crate::sys::{err, nr, syscall};
use crate::thread::Thread;
use outlast_image::degradation::Degradation;

const MODES: u32 = 0o777;

/// Does the call change the working directory?
pub fn moves(call: &Call) -> bool {
    matches!(call.nr, nr::CHDIR | nr::FCHDIR)
}

/// Changes the working directory. A path is walked once: from where it led to it would lead elsewhere.
pub fn change(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    let r = match call.nr {
        _ if super::unseen::chosen(e) => interruptible(t, call),
        nr::CHDIR => noted::names::serve(e, t, call),
        _ => redo(e, t, call),
    };
    e.directory_dirty = true;
    r
}

/// Sets the mask. Nobody else sees that, and a restore sets the committed one again: no commit is needed.
pub fn set_mask(e: &mut Engine, call: &Call) -> i64 {
    let old = e.kernel.umask;
    e.kernel.umask = call.args[0] as u32 & MODES;
    e.kernel_dirty = true;
    apply_mask(e);
    old as i64
}

/// Gives the kernel the mask that the program knows.
pub fn apply_mask(e: &Engine) {
    // SAFETY: touches no memory.
    unsafe { syscall!(nr::UMASK, e.kernel.umask) };
}

/// The mask that a new image starts with.
pub fn read_mask(e: &mut Engine) {
    // SAFETY: touches no memory. The kernel tells the mask only to who sets one.
    e.kernel.umask = unsafe { syscall!(nr::UMASK, MODES) } as u32;
    apply_mask(e);
}

/// Puts the working directory's path into the record being built, for a cold resume.
pub fn describe(e: &mut Engine) {
    let path = scratch::object_buffer();
    // SAFETY: the kernel writes at most the buffer's length.
    let n = unsafe { syscall!(nr::GETCWD, path.as_mut_ptr(), path.len().min(4096)) };
    e.directory_dirty = err::is(n);
    if !err::is(n) {
        e.store().put(object::DIRECTORY, 0, &path[..n as usize]);
    }
}

/// Goes to the committed directory from wherever a fresh process is.
pub fn return_to(e: &mut Engine) {
    let path = scratch::object_buffer();
    let n = e.store().object(object::DIRECTORY, 0, path).unwrap_or(0).min(4096);
    path[n] = 0;
    // SAFETY: the path ends with a NUL; the kernel checks it with this process's own rights.
    if n == 0 || path[0] != b'/' || err::is(unsafe { syscall!(nr::CHDIR, path.as_ptr()) }) {
        degrade(Degradation::DescriptorLost);
    }
}
